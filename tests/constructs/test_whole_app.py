"""What is told of a cluster when its app is whole: ways to AWS's services, policies, and names of clusters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

import ultracluster as uc

US_WEST_2 = cdk.Environment(account="123456789012", region="us-west-2")
NODES = uc.ComputeResource(name="nodes", instance_type="c7i.large", max_count=2)
CPU = uc.Queue(name="cpu", compute_resources=[NODES])
Network = Callable[[cdk.Stack], tuple[ec2.IVpc, dict[str, Any]]]


def new_stack(name: str = "Training", app: cdk.App | None = None, env: cdk.Environment | None = None) -> cdk.Stack:
    app = app or cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    return cdk.Stack(app, name, env=env)


def without_nat(stack: cdk.Stack) -> ec2.Vpc:
    return ec2.Vpc(stack, "Vpc", max_azs=1, nat_gateways=0)


def with_endpoints(stack: cdk.Stack, *services: str) -> ec2.Vpc:
    vpc = without_nat(stack)
    gateways, interfaces = ec2.GatewayVpcEndpointAwsService, ec2.InterfaceVpcEndpointAwsService
    for service in services:
        if service in ("s3", "dynamodb"):
            vpc.add_gateway_endpoint(service, service=gateways(service))
        else:
            vpc.add_interface_endpoint(service, service=interfaces(service))
    return vpc


def an_egress_subnet_without_egress(stack: cdk.Stack) -> tuple[ec2.IVpc, dict[str, Any]]:
    kinds = [
        ec2.SubnetConfiguration(name=each.name, subnet_type=each)
        for each in (ec2.SubnetType.PUBLIC, ec2.SubnetType.PRIVATE_WITH_EGRESS)
    ]
    return ec2.Vpc(stack, "Vpc", max_azs=1, nat_gateways=0, subnet_configuration=kinds), {}


def a_transit_gateway_later(stack: cdk.Stack) -> tuple[ec2.IVpc, dict[str, Any]]:
    vpc = without_nat(stack)
    [subnet] = vpc.isolated_subnets
    table = subnet.route_table.route_table_id
    ec2.CfnRoute(stack, "Way", route_table_id=table, destination_cidr_block="0.0.0.0/0", transit_gateway_id="tgw-1")
    return vpc, {}


def a_vpn_that_tells_its_routes(stack: cdk.Stack) -> tuple[ec2.IVpc, dict[str, Any]]:
    isolated = [ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)]
    return ec2.Vpc(stack, "Vpc", max_azs=1, nat_gateways=0, vpn_gateway=True, vpn_route_propagation=isolated), {}


def a_resource_without_a_class(kind: str, **properties: Any) -> Network:
    """Return what makes a VPC, and a resource of the route table of its subnet, or of a list of that."""

    def network(stack: cdk.Stack) -> tuple[ec2.IVpc, dict[str, Any]]:
        vpc = without_nat(stack)
        table = cast(ec2.CfnRouteTable, vpc.isolated_subnets[0].node.find_child("RouteTable"))
        given = {"RouteTableId": table.attr_route_table_id, "RouteTableIds": [table.ref]}
        name = "RouteTableIds" if kind.endswith("Propagation") else "RouteTableId"
        cdk.CfnResource(stack, "Way", type=kind, properties={name: given[name], **properties})
        return vpc, {}

    return network


def a_route_of_another_table(stack: cdk.Stack) -> tuple[ec2.IVpc, dict[str, Any]]:
    vpc = without_nat(stack)
    tables = [ec2.CfnRouteTable(stack, "Table", vpc_id=vpc.vpc_id).ref, "rtb-0123456789abcdef0"]
    for each in tables:
        ec2.CfnRoute(stack, f"Way{tables.index(each)}", route_table_id=each, destination_cidr_block="0.0.0.0/0")
    return vpc, {}


def a_queue_elsewhere(stack: cdk.Stack) -> tuple[ec2.IVpc, dict[str, Any]]:
    vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
    elsewhere = uc.IsolatedSubnet(stack, "Elsewhere", vpc=vpc, zone_id="usw2-az1", cidr="10.0.1.0/24")
    return vpc, {"queues": [CPU, uc.Queue(name="far", compute_resources=[NODES], subnet=elsewhere)]}


def imported(stack: cdk.Stack, kind: str) -> tuple[ec2.IVpc, dict[str, Any]]:
    given: dict[str, Any] = {f"{kind}_subnet_ids": ["subnet-0123456789abcdef0"]}
    attributes: dict[str, Any] = {"vpc_id": "vpc-0123456789abcdef0", "availability_zones": ["us-west-2a"]}
    return ec2.Vpc.from_vpc_attributes(stack, "Vpc", **attributes, **given), {}


EVERY = ("ec2", "logs", "cloudformation", "s3", "dynamodb")


@pytest.mark.parametrize(
    ("network", "told"),
    [
        (lambda stack: (ec2.Vpc(stack, "Vpc", max_azs=1), {}), None),
        (lambda stack: (uc.UltraClusterNetwork(stack, "Network", zone_id="usw2-az4").vpc, {}), None),
        (lambda stack: (without_nat(stack), {}), "queues.cpu: Training/Vpc/IsolatedSubnet1 has no route out"),
        (lambda stack: (without_nat(stack), {"head_node": uc.HeadNode(public=False)}), "head_node, queues.cpu: "),
        (an_egress_subnet_without_egress, "queues.cpu: Training/Vpc/PRIVATE_WITH_EGRESSSubnet1 has no route"),
        (a_queue_elsewhere, "queues.far: Training/Elsewhere has no route"),
        (a_transit_gateway_later, None),
        (a_vpn_that_tells_its_routes, None),
        (a_resource_without_a_class("AWS::EC2::VPNGatewayRoutePropagation", VpnGatewayId="vgw-1"), None),
        (a_resource_without_a_class("AWS::EC2::Route", DestinationCidrBlock="0.0.0.0/0"), None),
        (a_resource_without_a_class("AWS::EC2::Route", DestinationPrefixListId="pl-1"), None),
        (a_resource_without_a_class("AWS::EC2::Route", DestinationIpv6CidrBlock="::/0"), "queues.cpu: "),
        (a_route_of_another_table, "queues.cpu: "),
        (lambda stack: (with_endpoints(stack, *EVERY), {}), None),
        (lambda stack: (with_endpoints(stack, *EVERY[1:]), {}), "no endpoint for ec2: "),
        (
            lambda stack: (with_endpoints(stack, *EVERY), {"login_nodes": [uc.LoginPool(name="login")]}),
            "no endpoint for autoscaling, elasticloadbalancing: ",
        ),
        (lambda stack: imported(stack, "private"), None),
        (lambda stack: imported(stack, "isolated"), None),
    ],
)
def test_nodes_that_would_not_reach_aws_are_an_error_with_a_remedy(network: Network, told: str | None) -> None:
    stack = new_stack()
    vpc, others = network(stack)
    cluster = uc.ParallelCluster(stack, "Cluster", vpc=vpc, **{"queues": [CPU], **others})
    errors = cluster.node.validate()
    if told is None:
        assert errors == []
    else:
        [error] = errors
        assert told in error
        assert "route to a NAT gateway" in error
        assert "ec2.Subnet.from_subnet_id" in error


def said(stack: cdk.Stack, words: str) -> list[str]:
    """Return the warnings of the constructs of a stack that have some words."""
    every = [each for construct in stack.node.find_all() for each in construct.node.metadata]
    return [str(each.data) for each in every if each.type == "aws:cdk:warning" and words in str(each.data)]


def test_of_an_isolated_subnet_of_another_app_is_said_what_was_not_checked() -> None:
    stacks = [new_stack(kind, env=US_WEST_2) for kind in ("private", "isolated", "asked")]
    for stack in stacks:
        asked = stack.stack_name == "asked"
        vpc = ec2.Vpc.from_lookup(stack, "Vpc", is_default=False) if asked else imported(stack, stack.stack_name)[0]
        uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=[CPU])
    told = [each.stack_name for each in stacks if said(each, "whether nodes have a way")]
    assert told == ["isolated"], "until the CDK has asked the account, all subnets are the same"


def test_synthesis_ends_with_what_is_wrong() -> None:
    stack = new_stack()
    uc.ParallelCluster(stack, "Cluster", vpc=without_nat(stack), queues=[CPU])
    with pytest.raises(RuntimeError, match=r"\[Training/Cluster\] head_node|\[Training/Cluster\] queues.cpu"):
        assertions.Template.from_stack(stack)


def named(stack: cdk.Stack, name: str = "research", construct_id: str = "Cluster") -> uc.ParallelCluster:
    vpc = stack.node.try_find_child("Vpc") or imported(stack, "private")[0]
    return uc.ParallelCluster(stack, construct_id, vpc=cast(ec2.IVpc, vpc), queues=[CPU], cluster_name=name)


@pytest.mark.parametrize(
    ("first", "second", "meet"),
    [
        (None, None, True),
        (US_WEST_2, US_WEST_2, True),
        (cdk.Environment(region="us-west-2"), cdk.Environment(region="us-west-2"), True),
        (cdk.Environment(region="us-west-2"), cdk.Environment(region="us-east-1"), False),
        (US_WEST_2, cdk.Environment(account="123456789012", region="us-east-1"), False),
        (US_WEST_2, cdk.Environment(account="210987654321", region="us-west-2"), False),
        (US_WEST_2, None, False),
    ],
)
def test_a_name_of_two_clusters_or_of_another_stack_is_refused_where_they_would_meet(
    first: cdk.Environment | None, second: cdk.Environment | None, meet: bool
) -> None:
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    one, other = new_stack("One", app, first), new_stack("Other", app, second)
    before = named(one)
    for name, told in (("research", "than that of One/Cluster"), ("One", "than that of the stack One")):
        if not meet:
            named(other, name, name)
            continue
        with pytest.raises(uc.InvalidArguments, match=rf"cluster_name: got '{name}'; .* {told}"):
            named(other, name, name)
        assert other.node.try_find_child(name) is None
    assert before.node.validate() == []
    later = cdk.Stack(Construct(app, "Place"), "Later", stack_name="research", env=second)
    assert [f"the stack {later.node.path}" in each for each in before.node.validate()] == [True] * meet


@pytest.mark.parametrize(
    ("env", "told"), [(None, "Dev/Training/Cluster has the name research, too"), (US_WEST_2, None)]
)
def test_a_name_in_two_stages_is_refused_or_warned_of_where_they_may_be_one_account(
    env: cdk.Environment | None, told: str | None
) -> None:
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    dev, prod = (cdk.Stack(cdk.Stage(app, each, env=env), "Training") for each in ("Dev", "Prod"))
    named(dev)
    if told is None:
        with pytest.raises(uc.InvalidArguments, match="cluster_name: got 'research'"):
            named(prod)
    else:
        named(prod)
        assert (len(said(dev, told)), len(said(prod, told))) == (0, 1)


@pytest.mark.parametrize("whole", [False, True])
def test_a_cluster_that_was_removed_from_the_tree_gives_its_name_back(whole: bool) -> None:
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    stack = new_stack(app=app)
    place = Construct(stack, "Place")
    vpc = imported(stack, "private")[0]

    def cluster(scope: Construct) -> uc.ParallelCluster:
        return uc.ParallelCluster(scope, "Cluster", vpc=vpc, queues=[CPU], cluster_name="research")

    cluster(place)
    assert stack.node.try_remove_child("Place") if whole else place.node.try_remove_child("Cluster")
    cluster(Construct(stack, "Place") if whole else place)
    with pytest.raises(uc.InvalidArguments, match="than that of Training/Place/Cluster"):
        cluster(stack)


def test_a_cluster_has_neither_the_name_of_its_stack_nor_that_of_its_neighbour() -> None:
    stack = new_stack()
    vpc, _ = imported(stack, "private")
    uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=[CPU], cluster_name="research")
    for scope in (stack, cdk.NestedStack(stack, "Nested")):
        for name, why in (("research", "one cluster of a name"), ("Training", "makes a stack of the cluster's name")):
            with pytest.raises(uc.InvalidArguments, match=rf"cluster_name: got '{name}'; .*{why}"):
                uc.ParallelCluster(scope, "Again", vpc=vpc, queues=[CPU], cluster_name=name)


def size(document: dict[str, Any]) -> int:
    """Return the size of a policy, white space not counted, with long names in the place of references."""

    def flat(value: Any) -> Any:
        if isinstance(value, list):
            return [flat(each) for each in value]
        if not isinstance(value, dict):
            return value
        [(function, argument)] = value.items() if len(value) == 1 else [("", "")]
        if function == "Fn::Join":
            return argument[0].join(flat(argument[1]))
        if function in ("Ref", "Fn::GetAtt"):
            return "x" * 150
        return {key: flat(each) for key, each in value.items()}

    return len("".join(json.dumps(flat(document)).split()))


def test_grants_beyond_the_size_of_a_policy_are_in_further_ones() -> None:
    stack = new_stack()
    queues = [CPU, uc.Queue(name="gpu", compute_resources=[NODES])]
    vpc, _ = imported(stack, "private")
    pools = [uc.LoginPool(name="login")]
    cluster = uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=queues, login_nodes=pools)
    buckets = [s3.Bucket(stack, f"Bucket{number}") for number in range(40)]
    everybody = (cluster.compute_nodes, cluster.head_node, cluster.login_nodes, cluster.queue("cpu"))
    for bucket in buckets:
        for nodes in everybody:
            assert bucket.grant_read_write(nodes).success
    cluster.add_queue(uc.Queue(name="late", compute_resources=[NODES]))

    resources = assertions.Template.from_stack(stack).to_json()["Resources"]
    policies = {
        name: each["Properties"] for name, each in resources.items() if each["Type"] == "AWS::IAM::ManagedPolicy"
    }
    assert max(size(each["PolicyDocument"]) for each in policies.values()) <= 6144
    assert {each["Path"] for each in policies.values()} == {"/parallelcluster/"}
    [configuration] = [
        each["Properties"]["ClusterConfiguration"]
        for each in resources.values()
        if each["Type"] == "Custom::PclusterCluster"
    ]
    cpu, gpu, late = configuration["Scheduling"]["SlurmQueues"]

    def reached(nodes: dict[str, Any]) -> int:
        """Return how many buckets nodes may write to."""
        attached = [policies[each["Policy"]["Ref"]] for each in nodes["Iam"]["AdditionalIamPolicies"]]
        return sum(json.dumps(each["PolicyDocument"]).count('"s3:PutObject"') for each in attached)

    alike = (configuration["HeadNode"], configuration["LoginNodes"]["Pools"][0], gpu, late)
    assert [reached(each) for each in alike] == [40] * len(alike)
    assert reached(cpu) == 80
    assert sorted(policies) == sorted(
        {each["Policy"]["Ref"] for node in (*alike, cpu) for each in node["Iam"]["AdditionalIamPolicies"]}
    )


def test_a_cluster_that_is_retained_keeps_all_that_it_needs() -> None:
    stack = new_stack()
    vpc, _ = imported(stack, "private")
    cluster = uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=[CPU])
    cluster.apply_removal_policy(cdk.RemovalPolicy.RETAIN)
    cluster.add_queue(
        uc.Queue(name="more", compute_resources=[uc.ComputeResource(name="c", instance_type="c7i.large", max_count=1)])
    )
    s3.Bucket(stack, "Bucket", removal_policy=cdk.RemovalPolicy.DESTROY).grant_read(cluster.queue("more"))
    resources = assertions.Template.from_stack(stack).to_json()["Resources"]
    kept = {each["Type"] for each in resources.values() if each.get("DeletionPolicy") == "Retain"}
    assert {each["Type"] for each in resources.values()} - kept == {"AWS::S3::Bucket"}
    assert {"Custom::PclusterCluster", "AWS::CloudFormation::Stack", "AWS::IAM::ManagedPolicy"} <= kept
    with pytest.raises(uc.InvalidArguments, match=r"policy: got .RETAIN."):
        cluster.apply_removal_policy("RETAIN")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="allowed: RETAIN or DESTROY"):
        cluster.apply_removal_policy(cdk.RemovalPolicy.SNAPSHOT)


def test_nodes_of_an_imported_cluster_are_named_in_the_policy_of_a_bucket() -> None:
    """Their roles are not known here, but for their path; what has no policy of its own is warned of."""
    stack = new_stack()
    known = uc.ParallelCluster.from_cluster_attributes(stack, "Known", cluster_name="other")
    assert s3.Bucket(stack, "Bucket").grant_read(known).success
    template = assertions.Template.from_stack(stack)
    [policy] = template.find_resources("AWS::S3::BucketPolicy").values()
    assert "role/parallelcluster/other/*" in json.dumps(policy)
    assert template.find_resources("AWS::IAM::ManagedPolicy") == {}
    assertions.Annotations.from_stack(stack).has_warning(
        "/Training/Known", assertions.Match.string_like_regexp("nodes of other get no policy")
    )


def test_a_grant_to_a_cluster_reaches_all_its_nodes() -> None:
    stack = new_stack()
    vpc, _ = imported(stack, "private")
    pools = [uc.LoginPool(name="login")]
    cluster = uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=[CPU], login_nodes=pools)
    bucket = s3.Bucket(stack, "Bucket")
    assert bucket.grant_read(cluster).success
    policies = assertions.Template.from_stack(stack).find_resources("AWS::IAM::ManagedPolicy").values()
    assert [json.dumps(each).count('"s3:GetObject*"') for each in policies] == [1, 1, 1]


def test_a_statement_that_no_policy_holds_is_an_error_that_says_whose_it_is() -> None:
    stack = new_stack()
    vpc, _ = imported(stack, "private")
    cluster = uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=[CPU])
    for nodes, count in ((cluster.head_node, 75), (cluster.queue("cpu"), 90)):
        arns = [f"arn:aws:s3:::{number:060}/*" for number in range(count)]
        nodes.add_to_principal_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=arns))
    [error] = cluster.node.validate()
    assert error.startswith("a statement for nodes of queue cpu makes a policy of 7,")


@pytest.mark.parametrize("quota", ["x", "26", 9, 10.5, True])
def test_a_quota_that_iam_does_not_have_is_an_error_with_the_key_and_its_range(quota: object) -> None:
    stack = new_stack(app=cdk.App(context={"ultracluster:policiesPerRole": quota}, analytics_reporting=False))
    vpc, _ = imported(stack, "private")
    [error] = uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=[CPU]).node.validate()
    assert error.startswith(f'the context key "ultracluster:policiesPerRole": got {quota!r}; allowed: 10 to 25')


@pytest.mark.parametrize(("quota", "told"), [(None, True), (25, False), ("25", False)])
def test_more_policies_than_iam_attaches_are_an_error_that_says_what_to_do(quota: object, told: bool) -> None:
    app = cdk.App(context={} if quota is None else {"ultracluster:policiesPerRole": quota}, analytics_reporting=False)
    stack = new_stack(app=app)
    own = [{"Policy": f"arn:aws:iam::123456789012:policy/parallelcluster-{number}"} for number in range(9)]
    overrides = {"Scheduling": {"SlurmQueues": [{"Name": "cpu", "Iam": {"AdditionalIamPolicies": own}}]}}
    vpc, _ = imported(stack, "private")
    cluster = uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=[CPU], overrides=overrides)
    errors = cluster.node.validate()
    assert bool(errors) is told
    if errors:
        assert "nodes of queue cpu would have 11 policies" in errors[0]
        assert "L-0DA4ABF3" in errors[0]


def test_a_misspelt_instance_type_is_warned_of_and_a_size_that_cannot_be_is_refused() -> None:
    stack = new_stack()
    vpc, _ = imported(stack, "private")
    misspelt = uc.ComputeResource(name="far", instance_type="c7i.3xlarge", max_count=2)
    cluster = uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=[uc.Queue(name="a", compute_resources=[misspelt])])
    cluster.add_queue(uc.Queue(name="b", compute_resources=[NODES]))
    found = assertions.Annotations.from_stack(stack).find_warning("*", assertions.Match.string_like_regexp("c7i.3xl"))
    assert len(found) == 1
    assert "c7i.4xlarge" in str(found[0].entry.data)
    with pytest.raises(uc.InvalidArguments, match=r"instance_type: got 'c99\.huge'; allowed: an EC2 instance type"):
        cluster.add_queue(
            uc.Queue(name="c", compute_resources=[uc.ComputeResource(name="x", instance_type="c99.huge", max_count=1)])
        )
