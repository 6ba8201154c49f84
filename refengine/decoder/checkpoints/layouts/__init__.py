"""The released layouts, one file each: the config, the tensors that follow from it, the drafter.

`eagle_midlayer.py`, `deepspec_families.py`, `block_backbone.py`, `deepseek_layers.py`, `dart_ngrams.py` serve several.
"""
