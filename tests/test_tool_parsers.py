"""The servers' tool parsers beside our families: no name and no family is left out, and the check finds what is."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest

from dragoman.stages.rescue.families import FAMILIES

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

from write_parser_page import find_faults, load_parsers, parsers_page

NAMES = [family.name for family in FAMILIES]


def test_every_parser_and_every_family_has_a_row():
    assert find_faults(load_parsers(), NAMES) == []


def test_the_registries_are_whole_ones():
    data = load_parsers()
    sizes = {key: len(server["names"]) for key, server in data["servers"].items()}
    assert sizes == {"vllm": 58, "sglang": 44, "llama_cpp": 21, "ollama": 27, "mlx_lm": 14}
    for server in data["servers"].values():
        assert server["names"] == sorted(set(server["names"]))


@pytest.mark.parametrize("server", ["vllm", "sglang", "llama_cpp", "ollama", "mlx_lm"])
def test_a_registered_name_without_a_row_is_found(server: str):
    data = copy.deepcopy(load_parsers())
    data["servers"][server]["names"].append("brand_new")
    assert [fault for fault in find_faults(data, NAMES) if "brand_new has no row" in fault]


def test_a_row_of_no_family_and_a_family_without_a_row_are_found():
    data = load_parsers()
    data["families"]["esperanto"] = data["families"].pop("hermes")
    faults = find_faults(data, NAMES)
    assert "esperanto: no such family" in faults
    assert "hermes: the family has no row" in faults


def test_a_name_that_no_server_registers_is_found():
    data = load_parsers()
    data["families"]["hermes"]["vllm"].append("hermez")
    data["none"]["nobody"] = "is anywhere"
    faults = find_faults(data, NAMES)
    assert "hermes: hermez is not registered" in faults
    assert "nobody is registered nowhere" in faults


def test_the_page_names_every_parser():
    page = parsers_page("")
    for server in load_parsers()["servers"].values():
        assert server["title"] in page
        assert all(f"`{name}`" in page for name in server["names"])
