"""The one door for Arrow: bytes of strangers become tables, or are refused, before pyarrow has read one of them."""
