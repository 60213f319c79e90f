"""Another process's REST interface from here: ``mirrorspark serve``, or a Kafka Connect. Commands call it."""
