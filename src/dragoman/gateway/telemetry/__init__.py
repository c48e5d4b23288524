"""What is known of requests: records, log lines, numbers, spans, prices."""
