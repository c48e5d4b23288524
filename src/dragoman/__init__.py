"""dragoman stands between programs that call tools through a language model and every model that can be had."""
