"""Serves a model on loopback, on all three wires, until its standard input ends: it does not outlive whoever started it."""

import argparse
import os
import sys

import xllamacpp

arguments = argparse.ArgumentParser()
arguments.add_argument("--model", required=True)
arguments.add_argument("--port", type=int, required=True)
arguments.add_argument("--ctx", type=int, required=True)
arguments.add_argument("--threads", type=int, default=1)
given = arguments.parse_args()

params = xllamacpp.CommonParams()
params.model.path = given.model
params.hostnames = ["127.0.0.1"]
params.port = given.port
params.n_ctx = given.ctx
params.n_parallel = 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given.threads
params.use_jinja = True
params.cache_ram_mib = 256

server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
