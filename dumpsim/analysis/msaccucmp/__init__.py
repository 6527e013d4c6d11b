"""CANN's comparison tool, its flags, files, texts and exit codes; right where it is wrong. [spec ge 4]"""
