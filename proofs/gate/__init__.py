"""The gate of `make prove`: readers that each refuse a proof which is none.

`first` runs before anything is imported, and holds what would be to what was read. `text` lets only listed commands
through, before anything is compiled; `words` holds what coqc wrote down of names and notations to that text; `kernel`
asks Coq what every statement rests on, assumes and is about, and coqchk what the compiled files rest on; an answer that
is not wholly understood is a refusal. `accepted` holds what is cited, and the words that it is said in, to what
somebody has read; `cited` the sentences that cite, and `tests` the tests. `applied` reads in the proof terms of the
instances that whatever assumes something is applied there to all of it. `build` compiles, and believes no compiled file
that it did not make. `cheats` holds them to the files of `proofs/cheats`, every one of which proves something false or
too little. What our proofs are granted stands in `granted.toml`. The standard library alone.
"""
