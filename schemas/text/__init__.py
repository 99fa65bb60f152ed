"""Text for people and files: escaping of external text, amounts with units, and JSON that others wrote."""

from headroom.schemas.text.escaping import one_line as one_line
from headroom.schemas.text.escaping import printable as printable
from headroom.schemas.text.escaping import printable_json as printable_json
from headroom.schemas.text.escaping import shell_quoted as shell_quoted
