"""Tests RecordIO framing, sums of resources, and addresses."""

import pytest

from tepui import TepuiError, ports, scalar, scalar_sum
from tepui.http import base_urls, resolve
from tepui.recordio import Decoder


def test_records_survive_any_split() -> None:
    decoder = Decoder()
    found = [record for byte in b"5\nhello0\n2\nok" for record in decoder.feed(bytes([byte]))]
    assert found == [b"hello", b"", b"ok"]


@pytest.mark.parametrize("data", [b"x\n", b"-1\n", b"\n", b"9" * 21, b"11\n"])
def test_an_invalid_length_is_an_error(data: bytes) -> None:
    with pytest.raises(TepuiError):
        Decoder(max_record=10).feed(data)


def test_sums_are_exact_in_thousandths() -> None:
    assert scalar_sum([scalar("cpus", 0.1), scalar("cpus", 0.2), scalar("mem", 5)], "cpus") == 0.3


def test_ports_are_sorted() -> None:
    ranges = [{"begin": 9, "end": 10}, {"begin": 1, "end": 2}]
    assert ports([{"name": "ports", "type": "RANGES", "ranges": {"range": ranges}}]) == [(1, 2), (9, 10)]


def test_addresses() -> None:
    assert base_urls("a:5050, https://b:1/") == ["http://a:5050", "https://b:1"]
    assert resolve("http://a:5050", "//b:5051/api/v1/scheduler") == "http://b:5051"
    for wrong in ["zk://a:2181/mesos", "", " , "]:
        with pytest.raises(TepuiError):
            base_urls(wrong)
