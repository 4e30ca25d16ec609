import { createRequire } from 'node:module';

/** Packages that sign channels in to a cloud, with the major version that is used. Whoever needs one installs it: they are large. */
const optional = {
  '@aws-sdk/credential-providers': '3',
  '@azure/identity': '4',
  'google-auth-library': '11',
} as const;

const { resolve } = createRequire(import.meta.url);

/** Throws an error that says what to install, where a package is missing that a channel needs in order to `purpose`. */
export function requirePackage(name: keyof typeof optional, purpose: string): void {
  try {
    resolve(name);
  } catch {
    throw new Error(
      `the package ${name} is missing, which it needs to ${purpose}. Install it: npm install ${name}@${optional[name]}.`,
    );
  }
}
