"""What is left is found, whatever it is."""

import re
from pathlib import Path

import pytest

from config.settings import Settings, load
from emulator.aws import EmulatedAws
from emulator.inventory import LISTINGS, PARTS, inventory, reason_to_stay
from emulator.resources import MODELS
from tests.emulator.account import REGION, Account

CONFIG = Path(__file__).parents[2] / "config"


def test_every_type_is_listed_or_part_of_one_that_is() -> None:
    assert set(MODELS) - set(LISTINGS) - set(PARTS) == set()
    assert set(LISTINGS) & set(PARTS) == set()
    assert set(PARTS) <= set(MODELS)
    # "AWS::X::Y, because" or "AWS::X::Y: because"
    owners = {re.split("[,:] ", owner)[0] for owner in PARTS.values()}
    assert owners - set(LISTINGS) == {"nothing at all"}


def test_every_type_can_be_listed(aws: EmulatedAws) -> None:
    kinds = {kind for kind, _ in inventory(aws, REGION)}
    default_network = {f"AWS::EC2::{part}" for part in ("RouteTable", "SecurityGroup", "Subnet", "VPC")}
    assert kinds == default_network


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


@pytest.fixture
def settings() -> Settings:
    return load(CONFIG / "dev.yaml")


@pytest.mark.parametrize(
    ("resource_type", "name", "reason"),
    [
        ("AWS::S3::Bucket", "cdk-hnb659fds-assets", ""),
        ("AWS::S3::Bucket", "parallelcluster-0-v1-do-not-delete", "ParallelCluster's own, one in each Region"),
        ("AWS::S3::Bucket", "parallelcluster-mine", ""),
        ("AWS::Logs::LogGroup", "/aws/lambda/dev-f", "the log of a Lambda function, which outlives it"),
        ("AWS::Logs::LogGroup", "/aws/lambda/pcluster-f", "the log of a Lambda function, which outlives it"),
        ("AWS::Logs::LogGroup", "/aws/lambda/f", ""),
        ("AWS::Logs::LogGroup", "/aws/parallelcluster/dev", ""),
        ("AWS::EC2::VPC", "vpc-0", ""),
        ("AWS::CloudFormation::Stack", "dev-network", ""),
    ],
)
def test_what_aws_keeps(resource_type: str, name: str, reason: str, settings: Settings) -> None:
    assert reason_to_stay(settings, resource_type, name) == reason


def test_logs_that_the_settings_keep() -> None:
    kept = load(CONFIG / "trn1-16.yaml")
    assert kept.cluster.monitoring.retain_logs
    assert reason_to_stay(kept, "AWS::Logs::LogGroup", "/aws/parallelcluster/trn1-16") == (
        "kept by cluster.monitoring.retain_logs"
    )
