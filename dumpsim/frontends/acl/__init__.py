"""Dumps by an ACL config, whatever front end has made the models: ``aclmdlInitDump``, ``aclmdlSetDump``."""
