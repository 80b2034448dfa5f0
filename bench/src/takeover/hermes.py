"""Compacts Chat messages from standard input by Hermes' own rules: its summary when no model answers. Argument: window."""
import json
import sys

from agent.context_compressor import ContextCompressor


class ByRules(ContextCompressor):
    def _generate_summary(self, *args, **kwargs):
        return None


compressor = ByRules(model="bench", config_context_length=int(sys.argv[1]), quiet_mode=True)
json.dump(compressor.compress(json.load(sys.stdin), force=True), sys.stdout, default=str)
