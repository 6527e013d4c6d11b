"""Dumps configured by an ACL config, for models of any front end: ``aclmdlInitDump``, ``aclmdlSetDump``."""
