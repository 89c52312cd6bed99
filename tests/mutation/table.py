"""The rules that are broken on purpose, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass

NETWORK = "constructs/ultracluster/network.py"
LUSTRE = "constructs/ultracluster/lustre.py"
CLUSTER = "constructs/ultracluster/parallel_cluster.py"
NODE_SCRIPTS = "constructs/ultracluster/node_scripts.py"
RUN_BUNDLE = "constructs/ultracluster/run_bundle.sh"
RENDERING = "constructs/ultracluster/domain/cluster_configuration.py"
CLUSTER_RULES = "constructs/ultracluster/domain/cluster_rules.py"
WARNINGS = "constructs/ultracluster/domain/validator_warnings.py"
NEURON = "constructs/ultracluster/domain/neuron.py"
LUSTRE_RULES = "constructs/ultracluster/domain/lustre.py"
NAMES = "constructs/ultracluster/domain/names.py"
ADDRESSES = "constructs/ultracluster/domain/addresses.py"
SETTINGS = "config/settings.py"
SETTINGS_RULES = "config/rules.py"
COMPOSITION = "stacks/composition.py"
NODE_FACTS = "stacks/node_facts.py"
ACCESS_STACK = "stacks/pipeline_access_stack.py"
GITHUB_ROLE = "constructs/ultracluster/github.py"
MONITORING = "constructs/ultracluster/monitoring.py"
WATCHED = "constructs/ultracluster/watched.py"
DASHBOARD = "constructs/ultracluster/dashboard.py"
CDK_JSON = "cdk.json"
CLUSTER_SUBMIT = "scripts/jobs/submit.py"
OPERATIONS_HEAD_NODE = "scripts/operations/remote/head_node.py"

NETWORK_TESTS = "tests/stacks/test_network_construct.py"
LUSTRE_TESTS = "tests/stacks/test_lustre_construct.py"
CONSTRUCT_TESTS = "tests/stacks/test_parallel_cluster_construct.py"
STACK_TESTS = "tests/stacks/test_cluster_stack.py"
COMPOSITION_TESTS = "tests/stacks/test_composition.py"
ACCESS_TESTS = "tests/stacks/test_pipeline_access_stack.py"
PIPELINE_TESTS = "tests/stacks/test_pipeline_stack.py"
MONITORING_TESTS = "tests/stacks/test_monitoring_stack.py"
LUSTRE_RULE_TESTS = "tests/unit/test_lustre.py"
CLUSTER_RULE_TESTS = "tests/unit/test_cluster_rules.py"
RENDERING_TESTS = "tests/unit/test_cluster_configuration.py"
SETTINGS_TESTS = "tests/unit/test_settings.py"
RULES_TESTS = "tests/unit/test_settings_rules.py"
LAUNCH_TESTS = "tests/validation/test_launch_templates.py"
BUNDLE_TESTS = "tests/nodes/test_run_bundle.py"
CLUSTER_SUBMIT_TESTS = "tests/jobs/test_cluster_submit.py"
RUN_SUBMIT_TESTS = "tests/operations/test_run_submit.py"


@dataclass(frozen=True)
class Mutation:
    """A rule, and one edit of the code that breaks it.

    Attributes:
        name: Short name.
        rule: What holds as long as nobody makes the edit.
        file: The file to edit.
        old: Text that stands in the file once.
        new: What takes its place.
        tests: Each of these must fail; of a test with parameters, one case at least.
    """

    name: str
    rule: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _settings(*cases: str) -> tuple[str, ...]:
    return tuple(
        f"{RULES_TESTS}::test_a_broken_rule_is_told_with_its_place_value_and_what_is_allowed[{c}]" for c in cases
    )


MUTATIONS = (
    # --- network ---
    Mutation(
        "zone-by-name",
        "subnets are placed by zone id",
        NETWORK,
        "    resource.availability_zone_id = zone_id",
        "    resource.availability_zone = zone_id",
        (f"{NETWORK_TESTS}::test_both_subnets_are_placed_by_zone_id_and_no_zone_name_is_used",),
    ),
    Mutation(
        "no-dns-hostnames",
        "the VPC gives DNS host names",
        NETWORK,
        "enable_dns_hostnames=True",
        "enable_dns_hostnames=False",
        (f"{NETWORK_TESTS}::test_the_vpc_resolves_names",),
    ),
    Mutation(
        "public-private-subnet",
        "nodes of the private subnet get no public address",
        NETWORK,
        "map_public_ip_on_launch=False",
        "map_public_ip_on_launch=True",
        (f"{NETWORK_TESTS}::test_only_the_public_subnet_gives_public_addresses",),
    ),
    Mutation(
        "nat-in-private-subnet",
        "the NAT gateway stands in the public subnet",
        NETWORK,
        "nat_gateway = public_subnet.add_nat_gateway(first)",
        "nat_gateway = public_subnet.add_nat_gateway(first)\n        nat_gateway.subnet_id = private_subnet.subnet_id",
        (f"{NETWORK_TESTS}::test_the_private_subnet_goes_out_by_the_nat_gateway_in_the_public_one",),
    ),
    Mutation(
        "route-past-the-nat-gateway",
        "the private subnet goes out by the NAT gateway",
        NETWORK,
        "private_subnet.add_default_nat_route(nat_gateway.ref)",
        "private_subnet.add_default_internet_route(gateway.ref, attachment)",
        (f"{NETWORK_TESTS}::test_the_private_subnet_goes_out_by_the_nat_gateway_in_the_public_one",),
    ),
    Mutation(
        "one-nat-address",
        "the NAT gateway carries as many public addresses as asked for",
        NETWORK,
        "        if others:\n            nat_gateway.secondary",
        "        if not others:\n            nat_gateway.secondary",
        (f"{NETWORK_TESTS}::test_further_public_addresses_are_secondary",),
    ),
    Mutation(
        "endpoints-from-anywhere",
        "interface endpoints take HTTPS from the VPC alone",
        NETWORK,
        "add_ingress_rule(ec2.Peer.ipv4(cidr)",
        "add_ingress_rule(ec2.Peer.any_ipv4()",
        (f"{NETWORK_TESTS}::test_interface_endpoints_take_https_from_the_vpc_alone",),
    ),
    Mutation(
        "no-dynamodb-endpoint",
        "S3 and DynamoDB are reached without the NAT gateway",
        NETWORK,
        '            ("DynamoDbEndpoint", ec2.GatewayVpcEndpointAwsService.DYNAMODB),\n',
        "",
        (f"{NETWORK_TESTS}::test_s3_and_dynamodb_have_gateways_in_both_route_tables",),
    ),
    Mutation(
        "flow-logs-of-rejects",
        "flow logs hold all traffic",
        NETWORK,
        "FlowLogTrafficType.ALL",
        "FlowLogTrafficType.REJECT",
        (f"{NETWORK_TESTS}::test_flow_logs_of_all_traffic_are_kept_as_long_as_asked",),
    ),
    Mutation(
        "open-default-security-group",
        "the default security group is closed",
        CDK_JSON,
        '"@aws-cdk/aws-ec2:restrictDefaultSecurityGroup": true',
        '"@aws-cdk/aws-ec2:restrictDefaultSecurityGroup": false',
        (f"{NETWORK_TESTS}::test_the_default_security_group_is_closed",),
    ),
    # --- storage ---
    Mutation(
        "lustre-in-public-subnet",
        "the file system stands in the private subnet",
        LUSTRE,
        "subnet_ids=[network.private_subnet.subnet_id]",
        "subnet_ids=[network.public_subnet.subnet_id]",
        (f"{LUSTRE_TESTS}::test_the_file_system_stands_in_the_private_subnet_with_the_size_asked_for",),
    ),
    Mutation(
        "lustre-ports",
        "ports 988 and 1018-1023 are open to Lustre",
        LUSTRE_RULES,
        "PORTS = ((988, 988), (1018, 1023))",
        "PORTS = ((988, 988), (1021, 1023))",
        (f"{LUSTRE_TESTS}::test_one_security_group_opens_the_lustre_ports_to_the_vpc_and_everything_outward",),
    ),
    Mutation(
        "file-system-goes",
        "with retain, data outlive their stack",
        LUSTRE,
        "RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if retain else RemovalPolicy.DESTROY",
        "RemovalPolicy.DESTROY",
        (f"{LUSTRE_TESTS}::test_the_data_and_what_holds_it_are_kept_or_go_together",),
    ),
    Mutation(
        "failed-creation-stays",
        "what a failed creation made goes, even with retain",
        LUSTRE,
        "RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE",
        "RemovalPolicy.RETAIN",
        (f"{LUSTRE_TESTS}::test_the_data_and_what_holds_it_are_kept_or_go_together",),
    ),
    Mutation(
        "bucket-without-tls",
        "the bucket takes TLS only",
        LUSTRE,
        "enforce_ssl=True",
        "enforce_ssl=False",
        (f"{LUSTRE_TESTS}::test_the_bucket_is_private_encrypted_and_takes_tls_only",),
    ),
    Mutation(
        "uploads-stay",
        "incomplete uploads are cleared away",
        LUSTRE,
        "abort_incomplete_multipart_upload_after=Duration.days(7)",
        "expired_object_delete_marker=True",
        (f"{LUSTRE_TESTS}::test_incomplete_uploads_are_cleared_away_after_a_week",),
    ),
    Mutation(
        "no-lustre-logs",
        "warnings and errors of Lustre are logged",
        LUSTRE,
        'level="WARN_ERROR"',
        'level="DISABLED"',
        (f"{LUSTRE_TESTS}::test_warnings_and_errors_go_to_a_log_group_of_its_own",),
    ),
    Mutation(
        "capacity-steps",
        "the capacity is one that FSx offers",
        LUSTRE_RULES,
        "_STEP_GIB = 2400",
        "_STEP_GIB = 1200",
        (f"{LUSTRE_RULE_TESTS}::test_each_broken_rule_is_named_once",),
    ),
    Mutation(
        "same-storage-name",
        "another file system has another name of shared storage",
        LUSTRE_RULES,
        "        spec.throughput_mbps_per_tib,\n        spec.mount_dir,\n    ]",
        "        spec.mount_dir,\n    ]",
        (f"{LUSTRE_RULE_TESTS}::test_what_makes_a_new_file_system_or_mount_changes_the_name",),
    ),
    Mutation(
        "unprotected-stacks",
        "stacks of the list are protected from deletion",
        COMPOSITION,
        '"termination_protection": part in settings.termination_protection',
        '"termination_protection": False',
        (f"{COMPOSITION_TESTS}::test_the_stacks_of_the_list_are_protected_and_no_others",),
    ),
    # --- the construct, and the rendering of the configuration ---
    Mutation(
        "ssh-from-anywhere",
        "port 22 is closed to the world, key or no key",
        RENDERING,
        "AllowedIps=head.ssh_cidr or NOBODY",
        "AllowedIps=head.ssh_cidr",
        (
            f"{STACK_TESTS}::test_port_22_is_closed_on_every_node_that_has_a_rule_for_it[trn1-16]",
            f"{LAUNCH_TESTS}::test_port_22_is_closed_to_the_world[trn1-16]",
        ),
    ),
    Mutation(
        "imds-v1",
        "nodes take IMDSv2 alone",
        RENDERING,
        '"Imds": {"ImdsSupport": "v2.0"},',
        '"Imds": {"ImdsSupport": "v1.0"},',
        (f"{STACK_TESTS}::test_nodes_take_the_second_version_of_instance_metadata_alone[trn1-16]",),
    ),
    Mutation(
        "plain-root-volume",
        "root volumes are encrypted",
        RENDERING,
        "Encrypted=True",
        "Encrypted=False",
        (f"{LAUNCH_TESTS}::test_imds_v2_alone_and_encrypted_root_volumes_everywhere[trn1-16]",),
    ),
    Mutation(
        "no-efa",
        "each trn1.32xlarge has its eight EFA devices",
        RENDERING,
        'Efa={"Enabled": resource.has_efa}',
        'Efa={"Enabled": False}',
        (f"{LAUNCH_TESTS}::test_eight_efa_devices_and_the_expected_addresses[trn1-16]",),
    ),
    Mutation(
        "unplaced-nodes",
        "nodes are launched in the named placement group",
        RENDERING,
        'networking["PlacementGroup"] = {"Name": group}',
        'networking["PlacementGroup"] = {"Enabled": True}',
        (f"{STACK_TESTS}::test_all_queues_share_a_placement_group_of_ours[trn1-16]",),
    ),
    Mutation(
        "group-of-a-capacity-block",
        "nothing is said of a placement group for a Capacity Block",
        RENDERING,
        'elif queue.capacity_type != "CAPACITY_BLOCK" and any(',
        "elif any(",
        (f"{STACK_TESTS}::test_reserved_nodes_are_in_no_placement_group_and_a_capacity_block_says_nothing_of_one",),
    ),
    Mutation(
        "public-compute-nodes",
        "compute nodes stand in the private subnet",
        RENDERING,
        '_networking("SubnetIds", [bindings.private_subnet_id], bindings)',
        '_networking("SubnetIds", [bindings.public_subnet_id], bindings)',
        (f"{STACK_TESTS}::test_head_nodes_stand_in_the_public_subnet_and_all_others_in_the_private_one",),
    ),
    Mutation(
        "overrides-first",
        "overrides win over what is modelled",
        RENDERING,
        "_merge(configuration, spec.overrides)",
        "_merge(spec.overrides, configuration)",
        (f"{RENDERING_TESTS}::test_overrides_are_merged_last",),
    ),
    Mutation(
        "unmeant-suppression",
        "only warnings that are meant are suppressed",
        WARNINGS,
        "    if spec.head_node.ssh_key_name is None:\n",
        "    if spec.head_node.ssh_key_name is None or spec.head_node.ssh_cidr:\n",
        (f"{STACK_TESTS}::test_port_22_is_opened_to_the_block_that_is_given",),
    ),
    Mutation(
        "warnings-pass",
        "warnings of the validators stop a deployment",
        CLUSTER,
        '"ValidationFailureLevel": "WARNING"',
        '"ValidationFailureLevel": "ERROR"',
        (f"{STACK_TESTS}::test_warnings_stop_a_deployment_but_for_those_that_are_meant[trn1-16]",),
    ),
    Mutation(
        "rollback-on-failure",
        "the provider gets no property that breaks creation or update",
        CLUSTER,
        '                "ClusterName": spec.name,\n',
        '                "ClusterName": spec.name,\n                "RollbackOnFailure": False,\n',
        (f"{STACK_TESTS}::test_only_what_works_on_creation_and_on_update_is_asked_for[trn1-16]",),
    ),
    Mutation(
        "name-of-the-stack",
        "the cluster's name is unlike its stack's",
        CLUSTER,
        "spec.name == stack.stack_name",
        "spec.name == stack.artifact_id + stack.stack_name",
        (f"{CONSTRUCT_TESTS}::test_the_name_of_the_stack_is_refused_for_the_cluster",),
    ),
    Mutation(
        "policy-path",
        "policies have paths that the provider may attach",
        NODE_SCRIPTS,
        'path="/parallelcluster/"',
        'path="/ultracluster/"',
        (f"{STACK_TESTS}::test_nodes_have_only_policies_that_the_provider_may_attach[trn1-16]",),
    ),
    Mutation(
        "passwords-read",
        "the provider may read Munge keys, and no password",
        CLUSTER,
        'if place[-1] == "MungeKeySecretArn" else "DescribeSecret"',
        'if place[-1] == "MungeKeySecretArn" else "GetSecretValue"',
        (f"{STACK_TESTS}::test_the_provider_may_see_the_secrets_that_the_settings_name_as_its_validators_do",),
    ),
    Mutation(
        "cluster-before-its-scripts",
        "the cluster comes after everything that it needs, and goes before it",
        CLUSTER,
        "        cluster.node.add_dependency(scripts)\n",
        "",
        (f"{STACK_TESTS}::test_the_cluster_comes_after_everything_that_it_needs_and_goes_before[trn1-16]",),
    ),
    Mutation(
        "two-entries-of-s3-access",
        "a node reads one object by S3Access: of two, the update check would see changes that are none",
        RENDERING,
        '[{"BucketName": action.bucket, "KeyName": action.key}] if action else []',
        '[{"BucketName": each.bucket, "KeyName": each.key} for each in (action, actions.on_updated) if each]',
        (
            f"{RENDERING_TESTS}::test_a_full_cluster_says_everything",
            f"{STACK_TESTS}::test_each_node_may_read_its_scripts_and_no_others[trn1-16]",
        ),
    ),
    Mutation(
        "login-nodes-without-launcher",
        "login nodes run what never changes: the launcher",
        NODE_SCRIPTS,
        "on_configured=self._action(_LAUNCHER, [parameter_name, self._region])",
        'on_configured=self._action(_LAUNCHER, [parameter_name, self._region]) if node_kind == "HeadNode" else run',
        (
            f"{CONSTRUCT_TESTS}::test_another_login_script_changes_nothing_that_is_for_life",
            f"{STACK_TESTS}::test_a_change_of_scripts_leaves_what_is_for_life",
        ),
    ),
    Mutation(
        "unreadable-bundle",
        "compute nodes may read the bundle that they run",
        NODE_SCRIPTS,
        "on_configured=self._run(script), policy_arns=self._bundle_policy_arns(script)",
        "on_configured=self._run(script)",
        (f"{STACK_TESTS}::test_each_node_may_read_its_scripts_and_no_others[trn1-16]",),
    ),
    Mutation(
        "a-policy-for-each-queue",
        "nodes that read the same share a policy",
        NODE_SCRIPTS,
        "if paths not in self._policies:",
        "if paths:",
        (f"{CONSTRUCT_TESTS}::test_one_directory_for_several_kinds_of_node_is_one_asset_with_one_policy",),
    ),
    Mutation(
        "leftovers-in-the-bundle",
        "a bundle changes with its scripts alone",
        NODE_SCRIPTS,
        'exclude=["__pycache__"]',
        "exclude=[]",
        (f"{CONSTRUCT_TESTS}::test_a_bundle_holds_the_directory_without_what_python_leaves_in_it",),
    ),
    Mutation(
        "runtime-of-another-release",
        "nodes are told the exact versions of the release",
        NODE_FACTS,
        '"runtime": release.runtime',
        '"runtime": release.collectives',
        (f"{STACK_TESTS}::test_scripts_are_told_the_facts_as_text",),
    ),
    Mutation(
        "fact-that-no-script-takes",
        "scripts are told what they ask for",
        NODE_FACTS,
        '"tools": release.tools',
        '"tool": release.tools',
        (f"{STACK_TESTS}::test_scripts_are_told_what_they_ask_for_and_nothing_that_they_refuse",),
    ),
    Mutation(
        "no-efa-where-there-is-none",
        "a queue is told of EFA that is off only where the type has it",
        NODE_FACTS,
        "if has_efa(r.instance_type) and not r.has_efa",
        "if not r.has_efa",
        (f"{STACK_TESTS}::test_a_queue_is_told_where_efa_is_off_on_a_type_that_has_it",),
    ),
    # --- the bundle on a node ---
    Mutation(
        "unpacked-in-place",
        "a bundle is there whole or not at all",
        RUN_BUNDLE,
        'python3 -m zipfile -e "$new/bundle.zip" "$new/files"',
        'new=$home/bundles; mkdir "$bundle"; python3 -m zipfile -e "$new/new/bundle.zip" "$bundle"',
        (
            f"{BUNDLE_TESTS}::test_a_bundle_that_breaks_off_while_it_is_unpacked_is_not_kept",
            f"{BUNDLE_TESTS}::test_a_run_that_is_killed_while_it_unpacks_leaves_nothing_that_the_next_one_takes",
        ),
    ),
    Mutation(
        "fetched-each-time",
        "another run changes nothing",
        RUN_BUNDLE,
        "if [[ ! -d $bundle ]]; then",
        'if rm -rf "$bundle"; then',
        (f"{BUNDLE_TESTS}::test_another_run_fetches_and_changes_nothing",),
    ),
    Mutation(
        "fetched-once",
        "a failed download is tried again",
        RUN_BUNDLE,
        "for pause in 5 10 15 20 0; do",
        "for pause in 0; do",
        (f"{BUNDLE_TESTS}::test_it_waits_for_s3",),
    ),
    Mutation(
        "always-well",
        "run_bundle.sh ends like its script",
        RUN_BUNDLE,
        'exec bash "$home/current/$script" "${@:4}"',
        'bash "$home/current/$script" "${@:4}" || true',
        (f"{BUNDLE_TESTS}::test_it_ends_like_its_script",),
    ),
    # --- the provider ---
    Mutation(
        "one-provider-for-all-versions",
        "another version of ParallelCluster has another provider",
        CLUSTER,
        "f\"Provider{spec.version.replace('.', '')}\"",
        '"Provider"',
        (f"{CONSTRUCT_TESTS}::test_another_version_has_another_provider",),
    ),
    # --- rules of the settings ---
    Mutation(
        "wide-ssh",
        "SSH from the world is refused",
        CLUSTER_RULES,
        "block.prefixlen < WIDEST_SSH_PREFIX",
        "block.prefixlen < 0",
        _settings("ssh from the world", "ssh from half of the world"),
    ),
    Mutation(
        "51-queues",
        "a cluster has at most 50 queues, and 50 compute resources in all",
        CLUSTER_RULES,
        "MAX_QUEUES = 50",
        "MAX_QUEUES = 51",
        _settings("51 queues"),
    ),
    Mutation(
        "min-over-max",
        "MinCount is at most MaxCount",
        CLUSTER_RULES,
        "resource.min_count > resource.max_count",
        "resource.min_count > resource.max_count + 1",
        _settings("min over max"),
    ),
    Mutation(
        "block-id",
        "a Capacity Block has its reservation's id",
        CLUSTER_RULES,
        "    if resource.capacity_reservation_id is None:\n",
        "    if resource.capacity_reservation_id == '':\n",
        _settings("no block id"),
    ),
    Mutation(
        "part-of-a-block",
        "a Capacity Block has Min = Max > 0",
        CLUSTER_RULES,
        "resource.min_count != resource.max_count or resource.min_count == 0",
        "resource.min_count > resource.max_count",
        (f"{CLUSTER_RULE_TESTS}::test_a_capacity_block_has_all_of_its_nodes_all_the_time",),
    ),
    Mutation(
        "grouped-block",
        "a Capacity Block takes no placement group",
        CLUSTER_RULES,
        'if queue.capacity_type == "CAPACITY_BLOCK" and placed:',
        'if queue.capacity_type == "CAPACITY_BLOCK" and not placed:',
        (f"{CLUSTER_RULE_TESTS}::test_a_capacity_block_takes_no_placement_group",),
    ),
    Mutation(
        "grouped-reservation",
        "reserved capacity is launched in no placement group of ours",
        CLUSTER_RULES,
        "elif queue.placement_group_label and any(resource.reserved",
        "elif not queue.placement_group_label and any(resource.reserved",
        (
            *_settings("reservation in a group of ours"),
            f"{CLUSTER_RULE_TESTS}::test_reserved_capacity_takes_no_placement_group_of_this_deployment",
        ),
    ),
    Mutation(
        "existing-vpc-by-default",
        "an existing VPC comes with its blocks, which are not looked up",
        SETTINGS_RULES,
        "if field not in network.model_fields_set:",
        "if not getattr(network, field):",
        _settings(
            "vpc block of an existing vpc", "public block of an existing vpc", "private block of an existing vpc"
        ),
    ),
    Mutation(
        "long-node-names",
        "a node's full domain name has at most 63 characters",
        NAMES,
        "NODE_FQDN_MAX = 63",
        "NODE_FQDN_MAX = 64",
        (f"{CLUSTER_RULE_TESTS}::test_a_node_has_at_most_63_characters",),
    ),
    Mutation(
        "efa-anywhere",
        "EFA is asked only of types that have it",
        CLUSTER_RULES,
        "if resource.efa and not has_efa(resource.instance_type):",
        "if resource.efa and not resource.instance_type:",
        _settings("efa on a small one"),
    ),
    Mutation(
        "small-head-node",
        "the head node has memory for its fleet",
        CLUSTER_RULES,
        "needed = min(spec.max_nodes / 25 + 0.6, 16)",
        "needed = min(spec.max_nodes / 250 + 0.6, 16)",
        (f"{CLUSTER_RULE_TESTS}::test_the_head_node_has_memory_for_the_fleet",),
    ),
    Mutation(
        "pytorch-of-another-release",
        "PyTorch is one that the Neuron SDK has",
        CLUSTER_RULES,
        "reason = obstacles.get(spec.pytorch, f",
        "reason = obstacles.get(spec.pytorch) and (f",
        _settings("pytorch"),
    ),
    Mutation(
        "pytorch-of-another-os",
        "PyTorch loads with the C library of the OS",
        NEURON,
        "if system.glibc < pytorch.glibc:",
        "if system.glibc > pytorch.glibc:",
        _settings("pytorch of the os"),
    ),
    Mutation(
        "pytorch-of-another-python",
        "PyTorch has wheels for the Python of the OS",
        NEURON,
        "if system.python not in pytorch.pythons:",
        "if not pytorch.pythons:",
        (f"{CLUSTER_RULE_TESTS}::test_system_sdk_and_pytorch_go_together",),
    ),
    Mutation(
        "slow-torch-xla",
        "PyTorch 2.8 has torch-xla 2.8.1",
        NEURON,
        'torch_xla="2.8.1"',
        'torch_xla="2.8.0"',
        ("tests/unit/test_neuron.py::test_pytorch_2_8_comes_without_the_slow_torch_xla",),
    ),
    Mutation(
        "override-of-what-rules-check",
        "an override may not touch what rules count on",
        CLUSTER_RULES,
        "if fnmatchcase(dotted, pattern) or",
        "if fnmatchcase(pattern, dotted) and",
        _settings("override of a modelled key"),
    ),
    Mutation(
        "full-subnet",
        "the private subnet holds every node",
        CLUSTER_RULES,
        "needed = spec.max_node_addresses + reserve",
        "needed = spec.max_node_addresses",
        (f"{CLUSTER_RULE_TESTS}::test_the_private_subnet_holds_every_node",),
    ),
    Mutation(
        "anybody-may-publish",
        "alarms of other stacks may neither publish nor use the key",
        MONITORING,
        "iam.ServicePrincipal(_CLOUDWATCH, conditions=from_us)",
        "iam.ServicePrincipal(_CLOUDWATCH)",
        (
            f"{MONITORING_TESTS}::test_our_alarms_may_publish_and_nothing_without_tls",
            f"{MONITORING_TESTS}::test_notifications_are_encrypted_with_a_key_that_our_alarms_may_use",
        ),
    ),
    Mutation(
        "managed-key",
        "notifications are encrypted with a key that alarms may use",
        MONITORING,
        "kms:GenerateDataKey*",
        "kms:Encrypt",
        (f"{MONITORING_TESTS}::test_notifications_are_encrypted_with_a_key_that_our_alarms_may_use",),
    ),
    Mutation(
        "plain-notifications",
        "nothing is published without TLS",
        MONITORING,
        "enforce_ssl=True",
        "enforce_ssl=False",
        (f"{MONITORING_TESTS}::test_our_alarms_may_publish_and_nothing_without_tls",),
    ),
    Mutation(
        "alarm-before-the-first-cluster",
        "the head node's silence is told only once it has spoken",
        MONITORING,
        "cloudwatch.TreatMissingData.MISSING",
        "cloudwatch.TreatMissingData.BREACHING",
        (f"{MONITORING_TESTS}::test_an_alarm_is_raised_when_it_should_be[HeadNodeSilent]",),
    ),
    Mutation(
        "unheard-silence",
        "the head node's silence is told",
        MONITORING,
        "        silent.add_insufficient_data_action(actions.SnsAction(self.topic))\n",
        "",
        (f"{MONITORING_TESTS}::test_silence_is_told_once_there_was_a_word_and_of_the_head_node_alone",),
    ),
    Mutation(
        "stale-file-system",
        "another file system changes the template of its alarm, so that its id is read anew",
        MONITORING,
        "The file system {file_system.name} is",
        "The file system is",
        (f"{MONITORING_TESTS}::test_what_is_replaced_changes_the_template_so_that_its_id_is_read_anew",),
    ),
    Mutation(
        "stale-nat-gateway",
        "another NAT gateway changes the template of its alarm, so that its id is read anew",
        MONITORING,
        "The NAT gateway in {nat_gateway.subnet_cidr} had",
        "The NAT gateway had",
        (f"{MONITORING_TESTS}::test_what_is_replaced_changes_the_template_so_that_its_id_is_read_anew",),
    ),
    Mutation(
        "free-space-times-five",
        "free space is added up over storage targets, not over minutes",
        WATCHED,
        "period=Duration.minutes(1)",
        "period=Duration.minutes(5)",
        (f"{MONITORING_TESTS}::test_an_alarm_is_raised_when_it_should_be[FileSystemNearlyFull]",),
    ),
    Mutation(
        "one-dashboard-for-two-regions",
        "dashboards of two Regions have two names",
        DASHBOARD,
        "{stack.stack_name}-{stack.region}",
        "{stack.stack_name}",
        (f"{MONITORING_TESTS}::test_dashboards_of_one_name_in_two_regions_are_two",),
    ),
    Mutation(
        "unwanted-metrics",
        "nodes send metrics only where they are wanted",
        NODE_FACTS,
        'return {"metrics": "on"} if on else {}',
        'return {"metrics": "on"}',
        (f"{STACK_TESTS}::test_nodes_are_not_told_to_send_metrics_where_nobody_wants_them",),
    ),
    Mutation(
        "unreadable-jobs",
        "the head node may read the jobs that it is told of",
        NODE_SCRIPTS,
        "for path in (script.directory, *script.bundles.values())",
        "for path in (script.directory,)",
        (f"{STACK_TESTS}::test_each_node_may_read_its_scripts_and_no_others[trn1-16]",),
    ),
    Mutation(
        "cluster-named-like-the-stack-of-a-generation",
        "a cluster is not called like the stack of any generation",
        SETTINGS_RULES,
        r"cluster(-\d+)?|",
        "cluster|",
        _settings("cluster named like the stack of a generation", "generation named like its stack"),
    ),
    Mutation(
        "generations-with-one-name",
        "clusters of two generations share no name",
        SETTINGS,
        "name=names.of_generation(self.name or name, self.generation),",
        "name=self.name or name,",
        (
            f"{SETTINGS_TESTS}::test_a_generation_has_names_of_its_own",
            f"{SETTINGS_TESTS}::test_node_names_are_counted_with_the_generation",
            f"{COMPOSITION_TESTS}::test_clusters_of_two_generations_share_no_name",
            f"{COMPOSITION_TESTS}::test_alarms_and_dashboard_follow_the_generation",
        ),
    ),
    Mutation(
        "an-address-twice",
        "nobody is subscribed twice",
        SETTINGS_RULES,
        "if email.lower() in [each.lower() for each in emails[:index]]",
        "if not email",
        _settings("an address twice"),
    ),
    Mutation(
        "overlapping-subnets",
        "subnets do not overlap",
        ADDRESSES,
        "if blocks[field].overlaps(blocks[other]):",
        "if blocks[field] == blocks[other]:",
        _settings("overlap"),
    ),
    Mutation(
        "first-fault-only",
        "all faults are told at once",
        SETTINGS,
        "        found += [(fault.path, str(fault)) for fault in _rule_faults_beside(source.value, misshapen)]\n",
        "",
        (
            f"{SETTINGS_TESTS}::test_faults_of_all_sections_are_told_at_once",
            f"{SETTINGS_TESTS}::test_shapes_and_rules_of_one_section_are_told_at_once",
        ),
    ),
    Mutation(
        "blamed-default",
        "nobody is told of a rule that only the default of a misspelt key breaks",
        SETTINGS,
        "around = {place[:-1] for place in misshapen} - {()}",
        "around = set[Place]()",
        (f"{SETTINGS_TESTS}::test_a_default_in_the_place_of_a_wrong_value_is_not_blamed",),
    ),
    Mutation(
        "unknown-keys",
        "unknown keys are refused",
        SETTINGS,
        'extra="forbid"',
        'extra="ignore"',
        (f"{SETTINGS_TESTS}::test_an_unknown_key_is_told_with_the_one_that_was_meant",),
    ),
    Mutation(
        "submit-unchecked",
        "nothing is submitted that the training program refuses",
        CLUSTER_SUBMIT,
        "    check_program(given.nodes, options)\n",
        "",
        (f"{CLUSTER_SUBMIT_TESTS}::test_what_cannot_work_is_refused_before_anything_is_submitted",),
    ),
    Mutation(
        "train-uncompiled",
        "training begins when the compilation has ended well",
        CLUSTER_SUBMIT,
        "afterok",
        "afterany",
        (f"{CLUSTER_SUBMIT_TESTS}::test_training_waits_for_the_compilation",),
    ),
    Mutation(
        "two-jobs-in-a-directory",
        "a run's directory is for one job",
        CLUSTER_SUBMIT,
        "os.path.realpath(comment) == os.path.realpath(output)",
        "comment == output",
        (f"{CLUSTER_SUBMIT_TESTS}::test_what_cannot_work_is_refused_before_anything_is_submitted",),
    ),
    Mutation(
        "compilation-alone",
        "a compilation whose training Slurm refuses is cancelled",
        CLUSTER_SUBMIT,
        '            ask("scancel", job)\n',
        "            pass\n",
        (f"{CLUSTER_SUBMIT_TESTS}::test_a_compilation_is_not_left_alone",),
    ),
    Mutation(
        "command-lost",
        "a command that the head node did not run is no success",
        OPERATIONS_HEAD_NODE,
        '        if found["Status"] not in ("Success", "Failed") or found["ResponseCode"] < 0:\n',
        "        if False:\n",
        (f"{RUN_SUBMIT_TESTS}::test_a_command_that_never_ran_is_no_success",),
    ),
    # --- access of pipelines ---
    Mutation(
        "any-branch-deploys",
        "a stage is deployed from the branch alone",
        ACCESS_STACK,
        '"environment": stage.name, "ref": self._ref',
        '"environment": stage.name',
        (f"{ACCESS_TESTS}::test_other_branches_and_environments_and_pull_requests_with_one_get_in_nowhere",),
    ),
    Mutation(
        "any-subject-enters",
        "the subject is one of those that the role is for",
        GITHUB_ROLE,
        'f"repo:{each}:{context}"',
        'f"repo:{each}:*"',
        (f"{ACCESS_TESTS}::test_a_job_gets_into_its_own_role_alone",),
    ),
    Mutation(
        "repository-by-pattern",
        "the repository is compared whole, as the subject's ids are patterns",
        GITHUB_ROLE,
        '"aud": AUDIENCE, "repository": repository, ',
        '"aud": AUDIENCE, ',
        (f"{ACCESS_TESTS}::test_a_token_without_a_claim_deploys_nothing[repository]",),
    ),
    Mutation(
        "other-names-in-pipeline",
        "a pipeline deploys the stacks that people deploy",
        COMPOSITION,
        '            "stack_name": settings.stack_name(part),\n',
        "",
        (f"{PIPELINE_TESTS}::test_what_is_deployed_differs_in_names_for_people_alone",),
    ),
)
"""Each must be noticed by `make mutation`."""
