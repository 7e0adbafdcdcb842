"""What every floor above uses: keys and records of artefacts, plug-ins, strict schemas, files, errors."""
