"""API dump: what every API of a running network takes and gives, as TroubleShooter's api_dump writes it."""
