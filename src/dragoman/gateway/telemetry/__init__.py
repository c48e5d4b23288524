"""Records of requests, log lines, metrics, spans, prices."""
