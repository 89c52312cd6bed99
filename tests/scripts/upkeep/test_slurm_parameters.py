"""The table of Slurm's parameters and what writes it."""

from __future__ import annotations

import pytest

from scripts.upkeep.slurm_parameters import ARRAYS, MODULE, rendered, tables
from ultracluster.domain import slurm_parameters

SOURCE = """
s_p_options_t slurm_conf_options[] = {
    {"MaxJobCount", S_P_UINT32},
    {"DefMemPerCPU" , S_P_UINT64},
    {"PowerPlugin", S_P_STRING, _defunct_option},
    {"FastSchedule", S_P_UINT16},
    {"PartitionName", S_P_ARRAY, _parse_partitionname,
        _destroy_partitionname},

    {NULL}
};
    static s_p_options_t _nodename_options[] = {
        {"Weight", S_P_UINT32},
        {NULL}
    };
    static s_p_options_t _partition_options[] = {
        {"Hidden", S_P_BOOLEAN}, /* YES or NO */
        {NULL}
    };
    static s_p_options_t _nodeset_options[] = {
        {"Nodes", S_P_STRING},
        {NULL}
    };
    static s_p_options_t _downnodes_options[] = {
        {"Reason", S_P_STRING},
        {NULL}
    };
    fatal("The FastSchedule option has been removed. Please update your configuration.");
"""


def test_parameters_are_the_rows_of_the_parsers_tables() -> None:
    assert tables(SOURCE) == {
        "CLUSTER": {"MaxJobCount": "uint32", "DefMemPerCPU": "uint64", "PowerPlugin": "text", "PartitionName": "text"},
        "NODE": {"Weight": "uint32"},
        "PARTITION": {"Hidden": "boolean"},
        "NODE_SET": {"Nodes": "text"},
        "DOWN_NODES": {"Reason": "text"},
    }


def test_a_source_without_one_of_the_tables_is_refused() -> None:
    with pytest.raises(ValueError, match="no table _downnodes_options"):
        tables(SOURCE.replace("_downnodes_options", "_others"))


def test_the_module_is_what_is_written_and_nothing_else() -> None:
    written = {name: getattr(slurm_parameters, name) for name in ARRAYS}
    text = rendered(written, slurm_parameters.VERSION)
    assert text == MODULE.read_text(encoding="utf-8")
