"""API dump: inputs and outputs of every API that a network calls, in the format of TroubleShooter's api_dump."""
