"""The flows of a process as ``/mirrorspark/v1`` shows and steers them, in ``run`` and in ``serve``."""
