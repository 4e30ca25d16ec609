import type { Step } from '../migrations.ts';

/** Bits of a place that tell apart what was made in the same millisecond. */
const bits = 20;
const perMillisecond = 2 ** bits;

/** Columns that are looked for. */
const columns = ['hash', 'id', 'name', 'note', 'prefix', 'suffix'] as const;

const indexes = `
      CREATE INDEX api_keys_id ON api_keys (id);
      CREATE INDEX api_keys_name ON api_keys (name);
      CREATE INDEX api_keys_prefix ON api_keys (prefix, suffix);`;

/** Which entries of keys from before are still to be read: those behind this one. Without a row there are none. */
const filling = (collate: string): string => `
      CREATE TABLE api_keys_filling (one SMALLINT PRIMARY KEY, after TEXT${collate} NOT NULL);
      INSERT INTO api_keys_filling (one, after)
        SELECT 1, '' WHERE EXISTS (SELECT 1 FROM keyv WHERE namespace = 'api-keys');`;

const member = (name: string): string => `json_extract(NEW.value, '$.value.${name}')`;

/** SQL for whether an entry can be read as a key. */
const isKey = `CASE WHEN json_valid(NEW.value) THEN ${['id', 'name', 'prefix', 'suffix']
  .map((name) => `json_type(NEW.value, '$.value.${name}') IS 'text'`)
  .join(
    ' AND ',
  )} AND json_type(NEW.value, '$.value.createdAt') IS 'integer' AND ${member('hash')} IS NEW.hash ELSE 0 END`;

const first = `(MIN(MAX(${member('createdAt')}, 0), 8796093022206) << ${bits})`;

const textColumns = 'name, note, id, prefix';
const textOf = (row: 'OLD' | 'NEW'): string => `${row}.name, ${row}.note, ${row}.id, ${row}.prefix`;
const removeText = `INSERT INTO api_keys_text (api_keys_text, rowid, ${textColumns}) VALUES ('delete', OLD.place, ${textOf('OLD')});`;
const addText = `INSERT INTO api_keys_text (rowid, ${textColumns}) VALUES (NEW.place, ${textOf('NEW')});`;

/** SQL for the id of an owner in the text of an entry; NULL for none. */
const ownerOf = (text: string, name: 'team' | 'member'): string =>
  `CASE WHEN json_valid(${text}) THEN CASE WHEN json_type(${text}, '$.value.${name}') IS 'text' THEN json_extract(${text}, '$.value.${name}') END END`;

/** SQL that notes the owners of the key in an entry. */
const ownSqlite = (hash: string, text: string): string =>
  `INSERT OR IGNORE INTO api_keys_owners (owner, hash) SELECT owner, ${hash} FROM (
          SELECT ${ownerOf(text, 'team')} AS owner UNION SELECT ${ownerOf(text, 'member')}
        ) WHERE owner IS NOT NULL;`;

/**
 * The API keys as they are looked for: by their order, ids, names, first characters, and by any part of their texts. The keys themselves are
 * entries; triggers follow these, because gateways of the version before write entries alone. `place` is the order in which keys were made.
 */
export const apiKeySteps: readonly Step[] = [
  {
    name: 'api-keys-1',
    isAddition: true,
    // What is written to the view takes the place that it should have in the table.
    sqlite: `
      CREATE TABLE api_keys (
        place INTEGER PRIMARY KEY, ${columns.map((name) => `${name} TEXT NOT NULL`).join(', ')}, UNIQUE (hash)
      );${indexes}
      CREATE VIRTUAL TABLE api_keys_text USING fts5(${textColumns}, content='api_keys', content_rowid='place', tokenize='trigram');
      CREATE TRIGGER api_keys_added AFTER INSERT ON api_keys BEGIN ${addText} END;
      CREATE TRIGGER api_keys_removed AFTER DELETE ON api_keys BEGIN ${removeText} END;
      CREATE TRIGGER api_keys_changed AFTER UPDATE OF ${textColumns} ON api_keys BEGIN ${removeText} ${addText} END;
      CREATE VIEW api_keys_written AS SELECT key AS hash, value FROM keyv WHERE namespace = 'api-keys';
      CREATE TRIGGER api_keys_written_to INSTEAD OF INSERT ON api_keys_written BEGIN
        DELETE FROM api_keys WHERE hash = NEW.hash AND NOT ${isKey};
        INSERT INTO api_keys (place, ${columns.join(', ')})
          SELECT COALESCE((SELECT MAX(place) + 1 FROM api_keys WHERE place >= ${first} AND place < ${first} + ${perMillisecond}), ${first}),
            NEW.hash, ${member('id')}, ${member('name')}, COALESCE(CAST(${member('note')} AS TEXT), ''), ${member('prefix')}, ${member('suffix')}
          WHERE ${isKey}
          ON CONFLICT (hash) DO UPDATE SET ${columns.map((name) => `${name} = excluded.${name}`).join(', ')};
      END;
      CREATE TRIGGER keyv_api_key_inserted AFTER INSERT ON keyv WHEN NEW.namespace = 'api-keys' BEGIN
        INSERT INTO api_keys_written (hash, value) VALUES (NEW.key, NEW.value);
      END;
      CREATE TRIGGER keyv_api_key_updated AFTER UPDATE ON keyv WHEN NEW.namespace = 'api-keys' BEGIN
        INSERT INTO api_keys_written (hash, value) VALUES (NEW.key, NEW.value);
      END;
      CREATE TRIGGER keyv_api_key_deleted AFTER DELETE ON keyv WHEN OLD.namespace = 'api-keys' BEGIN
        DELETE FROM api_keys WHERE hash = OLD.key;
      END;${filling('')}`,
    // Texts of any length would not fit in an index. NUL and halves of characters are valid in JSON, and in no text of Postgres.
    postgres: `
      CREATE SEQUENCE api_keys_places MINVALUE 0 MAXVALUE ${perMillisecond - 1} CYCLE;
      CREATE TABLE api_keys (
        place BIGINT NOT NULL, hash TEXT COLLATE "C" PRIMARY KEY, id TEXT COLLATE "C" NOT NULL, name TEXT COLLATE "C" NOT NULL,
        prefix TEXT COLLATE "C" NOT NULL, suffix TEXT COLLATE "C" NOT NULL, words TEXT COLLATE "C" NOT NULL
      );
      CREATE INDEX api_keys_place ON api_keys (place);${indexes}
      CREATE FUNCTION api_key_grams(words TEXT) RETURNS TEXT[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
        SELECT COALESCE(array_agg(DISTINCT substr(words, n, 3)), '{}') FROM generate_series(1, length(words) - 2) AS n
      $$;
      CREATE INDEX api_keys_grams ON api_keys USING gin (api_key_grams(words));
      DO $$
        BEGIN
          -- In the C locale, lower() changes no letter beyond ASCII.
          IF getdatabaseencoding() = 'UTF8' AND EXISTS (SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu') THEN
            CREATE FUNCTION api_key_lower(given TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
              'SELECT lower(given COLLATE "und-x-icu") COLLATE "C"';
          ELSE
            CREATE FUNCTION api_key_lower(given TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
              'SELECT lower(given COLLATE "default") COLLATE "C"';
          END IF;
        END
      $$;
      CREATE FUNCTION api_key_members(value TEXT) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN
          RETURN regexp_replace(value, '\\\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\\\ufffd', 'g')::jsonb -> 'value';
        EXCEPTION WHEN OTHERS THEN
          RETURN NULL;
        END
      $$;
      CREATE FUNCTION api_key_write(given TEXT, value TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
        DECLARE
          key JSONB := api_key_members(value);
        BEGIN
          IF key ->> 'hash' = given AND jsonb_typeof(key -> 'id') = 'string' AND jsonb_typeof(key -> 'name') = 'string'
            AND jsonb_typeof(key -> 'prefix') = 'string' AND jsonb_typeof(key -> 'suffix') = 'string'
            AND jsonb_typeof(key -> 'createdAt') = 'number' THEN
            INSERT INTO api_keys (place, hash, id, name, prefix, suffix, words)
            VALUES (
              LEAST(GREATEST((key ->> 'createdAt')::numeric, 0), 8796093022206)::bigint * ${perMillisecond} + nextval('api_keys_places'),
              given, left(key ->> 'id', 200), left(key ->> 'name', 250), left(key ->> 'prefix', 20), left(key ->> 'suffix', 20),
              api_key_lower(concat_ws(chr(10), left(key ->> 'name', 250), left(key ->> 'note', 2500), left(key ->> 'id', 200), key ->> 'prefix'))
            )
            ON CONFLICT (hash) DO UPDATE SET id = excluded.id, name = excluded.name, prefix = excluded.prefix, suffix = excluded.suffix,
              words = excluded.words;
          ELSE
            DELETE FROM api_keys WHERE hash = given;
          END IF;
        END
      $$;
      CREATE FUNCTION api_keys_follow() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF TG_OP = 'DELETE' THEN
            DELETE FROM api_keys WHERE hash = OLD.key;
          ELSE
            PERFORM api_key_write(NEW.key, NEW.value);
          END IF;
          RETURN NULL;
        END
      $$;
      CREATE TRIGGER keyv_api_key_written AFTER INSERT OR UPDATE ON keyv
        FOR EACH ROW WHEN (NEW.namespace = 'api-keys') EXECUTE FUNCTION api_keys_follow();
      CREATE TRIGGER keyv_api_key_deleted AFTER DELETE ON keyv
        FOR EACH ROW WHEN (OLD.namespace = 'api-keys') EXECUTE FUNCTION api_keys_follow();${filling(' COLLATE "C"')}`,
  },
  {
    name: 'api-keys-2',
    isAddition: true,
    sqlite: `
      CREATE TABLE api_keys_owners (owner TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (owner, hash)) WITHOUT ROWID;
      CREATE INDEX api_keys_owners_hash ON api_keys_owners (hash);
      CREATE TRIGGER keyv_api_key_owned_inserted AFTER INSERT ON keyv WHEN NEW.namespace = 'api-keys' BEGIN
        ${ownSqlite('NEW.key', 'NEW.value')}
      END;
      CREATE TRIGGER keyv_api_key_owned_updated AFTER UPDATE ON keyv WHEN NEW.namespace = 'api-keys' BEGIN
        DELETE FROM api_keys_owners WHERE hash IN (OLD.key, NEW.key);
        ${ownSqlite('NEW.key', 'NEW.value')}
      END;
      CREATE TRIGGER keyv_api_key_owned_deleted AFTER DELETE ON keyv WHEN OLD.namespace = 'api-keys' BEGIN
        DELETE FROM api_keys_owners WHERE hash = OLD.key;
      END;
      INSERT OR IGNORE INTO api_keys_owners (owner, hash)
        SELECT owner, key FROM (
          SELECT key, ${ownerOf('value', 'team')} AS owner FROM keyv WHERE namespace = 'api-keys'
          UNION SELECT key, ${ownerOf('value', 'member')} FROM keyv WHERE namespace = 'api-keys'
        ) WHERE owner IS NOT NULL;`,
    postgres: `
      CREATE TABLE api_keys_owners (
        owner TEXT COLLATE "C" NOT NULL, hash TEXT COLLATE "C" NOT NULL, PRIMARY KEY (owner, hash)
      );
      CREATE INDEX api_keys_owners_hash ON api_keys_owners (hash);
      CREATE FUNCTION api_key_own(given TEXT, value TEXT) RETURNS VOID LANGUAGE sql AS $$
        INSERT INTO api_keys_owners (owner, hash)
          SELECT left(owner, 200), given FROM (SELECT api_key_members(value) AS key OFFSET 0) AS members,
            LATERAL (VALUES (key -> 'team'), (key -> 'member')) AS named (found),
            LATERAL (SELECT found #>> '{}' AS owner) AS texts
          WHERE jsonb_typeof(found) = 'string'
        ON CONFLICT DO NOTHING
      $$;
      CREATE FUNCTION api_keys_follow_owners() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF TG_OP <> 'INSERT' THEN
            DELETE FROM api_keys_owners WHERE hash = OLD.key;
          END IF;
          IF TG_OP <> 'DELETE' THEN
            PERFORM api_key_own(NEW.key, NEW.value);
          END IF;
          RETURN NULL;
        END
      $$;
      CREATE TRIGGER keyv_api_key_owned AFTER INSERT OR UPDATE ON keyv
        FOR EACH ROW WHEN (NEW.namespace = 'api-keys') EXECUTE FUNCTION api_keys_follow_owners();
      CREATE TRIGGER keyv_api_key_owned_deleted AFTER DELETE ON keyv
        FOR EACH ROW WHEN (OLD.namespace = 'api-keys') EXECUTE FUNCTION api_keys_follow_owners();
      SELECT api_key_own(key, value) FROM keyv
        WHERE namespace = 'api-keys' AND (value LIKE '%"team":%' OR value LIKE '%"member":%');`,
  },
  {
    name: 'api-keys-3',
    isAddition: true,
    // The owners that belong to an organisation.
    sqlite: `CREATE INDEX keyv_owners_organisation
      ON keyv (CASE WHEN json_valid(value) THEN json_extract(value, '$.value.organisation') END) WHERE namespace = 'owners';`,
    postgres: `CREATE INDEX keyv_owners_organisation ON keyv ((api_key_members(value) ->> 'organisation')) WHERE namespace = 'owners';`,
  },
];
