"""What every floor stands on: keys and records of artefacts, plug-ins, strict schemas, files, errors."""
