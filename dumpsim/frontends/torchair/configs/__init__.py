"""``torchair.configs``: the options of a compilation."""
