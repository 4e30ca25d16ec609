import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Why tests are skipped, for their title; undefined when they can run. Throws where the program is required. */
export function withoutOpenssl(): string | undefined {
  if (spawnSync('openssl', ['version']).status === 0) return undefined;
  if ((process.env.SLUICE_TEST_REQUIRE ?? '').split(',').includes('openssl'))
    throw new Error('OpenSSL is required by SLUICE_TEST_REQUIRE, and there is no openssl.');
  return 'skipped: no openssl';
}

/** A certificate with its key: where their files are, and what is in them. */
export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

/** An authority of the test's own. */
export interface Authority extends Certificate {
  /** A certificate of this authority for a name or an IP address. */
  issue(name: string): Certificate;
}

/** Makes an authority with files in a folder of its own, which everybody may read: servers run as other users. */
export function makeAuthority(): Authority {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-certificates-'));
  chmodSync(folder, 0o755);
  const run = (...words: string[]): void => {
    const { status, stderr } = spawnSync('openssl', words, { cwd: folder, encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
  };
  const read = (name: string): Certificate => {
    const [certFile, keyFile] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
    return { certFile, keyFile, cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
  };
  const newKey = (name: string): string[] =>
    `req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ${name}.key -subj /CN=${name}`.split(
      ' ',
    );
  run(...newKey('authority'), '-x509', '-days', '30', '-out', 'authority.crt');
  return {
    ...read('authority'),
    issue(name) {
      run(...newKey(name), '-out', `${name}.csr`);
      const kind = /^[\d.]+$/.test(name) ? 'IP' : 'DNS';
      writeFileSync(join(folder, 'names'), `subjectAltName=${kind}:${name}\n`);
      const by = ['-CA', 'authority.crt', '-CAkey', 'authority.key', '-CAcreateserial'];
      run(
        'x509',
        '-req',
        '-in',
        `${name}.csr`,
        ...by,
        '-days',
        '30',
        '-extfile',
        'names',
        '-out',
        `${name}.crt`,
      );
      return read(name);
    },
  };
}
