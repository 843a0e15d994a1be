"""RecordIO: each record is its length in decimal digits, a newline, and that many bytes."""

from .errors import TepuiError

MAX_RECORD = 256 * 1024 * 1024
_MAX_DIGITS = 20


class Decoder:
    """Decoder of a stream of records that arrives in chunks."""

    def __init__(self, max_record: int = MAX_RECORD) -> None:
        self._buffer = bytearray()
        self._max = max_record

    def feed(self, data: bytes) -> list[bytes]:
        """Add *data* and return the records that are now complete.

        Raises :exc:`TepuiError` if a length is invalid or above the limit.
        """
        self._buffer += data
        records: list[bytes] = []
        while True:
            end = self._buffer.find(b"\n", 0, _MAX_DIGITS + 1)
            if end < 0:
                if len(self._buffer) > _MAX_DIGITS:
                    raise TepuiError("invalid RecordIO: the length of a record has more than 20 digits")
                return records
            digits = bytes(self._buffer[:end])
            if not digits.isdigit():
                raise TepuiError(f"invalid RecordIO: {digits!r} is not the length of a record")
            length = int(digits)
            if length > self._max:
                raise TepuiError(f"a record of {length} bytes exceeds the limit of {self._max} bytes")
            if len(self._buffer) < end + 1 + length:
                return records
            records.append(bytes(self._buffer[end + 1 : end + 1 + length]))
            del self._buffer[: end + 1 + length]
