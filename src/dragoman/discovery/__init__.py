"""What servers and catalogue say of models: queries, facts, lists."""
