-- How many requests of one network of strangers wait for verification is limited.

-- Serves waiting_intents.
create index intents_registrants on intents (registrant_network) where registrant_network < 0;
