"""What the command line does, one file a command, named as it is; `refengine.cli` calls them and sets exit codes."""
