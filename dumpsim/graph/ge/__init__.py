"""GE's compiler: operator fusion, device layouts, streams, and the text of its graphs."""
