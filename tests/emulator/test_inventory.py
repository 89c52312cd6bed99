"""What is left after a deletion is found, whatever it is."""

from emulator.aws import EmulatedAws
from emulator.inventory import LISTINGS, inventory
from emulator.resources import MODELS
from tests.emulator.account import REGION, Account

PARTS = {
    "AWS::CDK::Metadata",
    "AWS::EC2::Route",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPCGatewayAttachment",
    "AWS::EFS::MountTarget",
    "AWS::ElasticLoadBalancingV2::Listener",
    "AWS::IAM::Policy",
    "AWS::KMS::Key",
    "AWS::Logs::MetricFilter",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SNS::TopicPolicy",
    "Custom::S3AutoDeleteObjects",
    "Custom::VpcRestrictDefaultSG",
}
"""Types that go with another one and are not listed by themselves, such as routes; a deleted KMS key stays for days."""


def test_every_type_is_listed_or_part_of_another() -> None:
    assert set(MODELS) - set(LISTINGS) == PARTS


def test_what_is_new_is_found_until_it_is_gone(aws: EmulatedAws) -> None:
    account = Account(aws)
    before = inventory(aws, REGION)
    vpc = account.vpc()
    gateway, attachment = account.attached_gateway(vpc)
    address = account.address()
    subnet = account.subnet(vpc)
    nat = account.nat_gateway(subnet, address)
    function = account.function()
    made = {kind for kind, _ in inventory(aws, REGION) - before}
    assert made >= {"AWS::EC2::EIP", "AWS::EC2::NatGateway", "AWS::EC2::NetworkInterface", "AWS::EC2::VPC"}
    assert made >= {"AWS::IAM::Role", "AWS::Lambda::Function", "AWS::S3::Bucket"}
    for resource in (nat, address, subnet, attachment, gateway, vpc, function):
        account.delete(resource)
    left = {kind for kind, _ in inventory(aws, REGION) - before}
    assert left == {"AWS::IAM::Role", "AWS::S3::Bucket"}
