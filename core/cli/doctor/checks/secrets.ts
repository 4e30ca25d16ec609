/** Checks for secrets that other users can read or guess. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { maskSecrets } from '../../../log.ts';
import { isPostgres } from '../../../settings/database.ts';
import { pathIn } from '../../../state/database/index.ts';
import { findingsOf, type Check, type Examined, type Finding } from '../finding.ts';

const { ok, warning, error } = findingsOf('secrets');

/** Matches parts of passwords that attackers try first. */
const guessed = /pass|admin|sluice|secret|change|welcome|qwert|1234|letmein/i;

/** The check. */
export const secrets: Check = {
  name: 'secrets',
  look(examined) {
    const found = [...fileFindings(examined), ...passwordFindings(examined), ...bootstrapFindings(examined)];
    return found.length === 0
      ? [ok('Other users of this machine cannot read any file with secrets.')]
      : found;
  },
};

function fileFindings({ config, databaseUrl }: Examined): readonly Finding[] {
  const database = isPostgres(databaseUrl) ? ':memory:' : pathIn(databaseUrl);
  const files = [
    { path: join(config.root, '.env'), isSecret: true },
    { path: config.file, isSecret: false },
    ...(database === ':memory:' ? [] : [{ path: database, isSecret: true }]),
  ];
  return files.flatMap(({ path, isSecret }) => {
    if (process.platform === 'win32' || !existsSync(path)) return [];
    const mode = statSync(path).mode & 0o777;
    if ((mode & 0o007) === 0) return [];
    const holds = isSecret || hasSecret(readFileSync(path, 'utf8'));
    return holds
      ? [
          warning(
            `${path} contains secrets, and every user of this machine can read it (mode ${mode.toString(8)}).`,
            `Run: chmod o= ${path}`,
          ),
        ]
      : [];
  });
}

function hasSecret(text: string): boolean {
  return maskSecrets(text) !== text;
}

function passwordFindings({ config }: Examined): readonly Finding[] {
  const { adminPassword } = config.settings;
  if (adminPassword === undefined) return [];
  const isWeak = guessed.test(adminPassword) || new Set(adminPassword).size < 8;
  return isWeak
    ? [
        error(
          'The admin password is easy to guess.',
          'Set another one ("adminPassword", SLUICE_ADMIN_PASSWORD), such as: openssl rand -base64 24',
        ),
      ]
    : [];
}

function bootstrapFindings({ config }: Examined): readonly Finding[] {
  return config.settings.bootstrapKey === undefined
    ? []
    : [
        warning(
          'The bootstrap key is still set. Only the first start needs it, but it stays valid until its key is deleted.',
          'Create other keys with "sluice key create", revoke the first one, and remove "bootstrapKey" (SLUICE_BOOTSTRAP_KEY).',
        ),
      ];
}
