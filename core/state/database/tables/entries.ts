import type { Step } from '../migrations.ts';

/** SQL that records a change of a namespace of SQLite. `entry`: the row that was added (NEW) or removed (OLD). */
const counted = (entry: 'NEW' | 'OLD'): string => `
        UPDATE keyv_revisions SET revision = revision + 1 WHERE namespace = ${entry}.namespace;
        INSERT INTO keyv_changes (namespace, key, revision)
          SELECT namespace, ${entry}.key, revision FROM keyv_revisions WHERE namespace = ${entry}.namespace
          ON CONFLICT (namespace, key) DO UPDATE SET revision = excluded.revision;`;

/**
 * Entries of all namespaces. The triggers count the writes to a namespace, whoever makes them, once somebody has asked for its revision, and
 * note which keys were written; other namespaces pay for two failed look-ups and nothing else.
 */
export const keyvSteps: readonly Step[] = [
  {
    name: 'keyv-1',
    // The tables may be there already, from before steps were noted.
    sqlite: `
      CREATE TABLE IF NOT EXISTS keyv (
        namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, expires INTEGER,
        PRIMARY KEY (namespace, key)
      );
      CREATE INDEX IF NOT EXISTS keyv_expires ON keyv (expires) WHERE expires IS NOT NULL;
      CREATE TABLE IF NOT EXISTS keyv_revisions (namespace TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TRIGGER IF NOT EXISTS keyv_inserted AFTER INSERT ON keyv BEGIN
        UPDATE keyv_revisions SET revision = revision + 1 WHERE namespace = NEW.namespace;
      END;
      CREATE TRIGGER IF NOT EXISTS keyv_updated AFTER UPDATE ON keyv BEGIN
        UPDATE keyv_revisions SET revision = revision + 1 WHERE namespace = NEW.namespace;
      END;
      CREATE TRIGGER IF NOT EXISTS keyv_deleted AFTER DELETE ON keyv BEGIN
        UPDATE keyv_revisions SET revision = revision + 1 WHERE namespace = OLD.namespace;
      END;`,
    // Keys are compared by their bytes: pages of a listing must not depend on the server's language.
    postgres: `
      CREATE TABLE keyv (
        namespace TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL, value TEXT NOT NULL, expires BIGINT,
        PRIMARY KEY (namespace, key)
      );
      CREATE INDEX keyv_expires ON keyv (expires) WHERE expires IS NOT NULL;
      CREATE TABLE keyv_revisions (namespace TEXT COLLATE "C" PRIMARY KEY, revision BIGINT NOT NULL);
      CREATE FUNCTION keyv_count() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          UPDATE keyv_revisions SET revision = revision + 1
          WHERE namespace IN (SELECT changed.namespace FROM changed);
          RETURN NULL;
        END
      $$;
      CREATE TRIGGER keyv_inserted AFTER INSERT ON keyv
        REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keyv_count();
      CREATE TRIGGER keyv_updated AFTER UPDATE ON keyv
        REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keyv_count();
      CREATE TRIGGER keyv_deleted AFTER DELETE ON keyv
        REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION keyv_count();`,
  },
  {
    name: 'keyv-2',
    sqlite: `
      CREATE TABLE keyv_changes (
        namespace TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, PRIMARY KEY (namespace, key)
      ) WITHOUT ROWID;
      CREATE INDEX keyv_changes_revision ON keyv_changes (namespace, revision);
      DROP TRIGGER keyv_inserted;
      DROP TRIGGER keyv_updated;
      DROP TRIGGER keyv_deleted;
      CREATE TRIGGER keyv_inserted AFTER INSERT ON keyv BEGIN${counted('NEW')}
      END;
      CREATE TRIGGER keyv_updated AFTER UPDATE ON keyv BEGIN${counted('NEW')}
      END;
      CREATE TRIGGER keyv_deleted AFTER DELETE ON keyv BEGIN${counted('OLD')}
      END;`,
    postgres: `
      CREATE TABLE keyv_changes (
        namespace TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL, revision BIGINT NOT NULL,
        PRIMARY KEY (namespace, key)
      );
      CREATE INDEX keyv_changes_revision ON keyv_changes (namespace, revision);
      CREATE OR REPLACE FUNCTION keyv_count() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          UPDATE keyv_revisions SET revision = revision + 1
          WHERE namespace IN (SELECT changed.namespace FROM changed);
          INSERT INTO keyv_changes (namespace, key, revision)
          SELECT DISTINCT changed.namespace, changed.key, counted.revision
          FROM changed JOIN keyv_revisions AS counted ON counted.namespace = changed.namespace
          ON CONFLICT (namespace, key) DO UPDATE SET revision = excluded.revision;
          RETURN NULL;
        END
      $$;`,
  },
];
