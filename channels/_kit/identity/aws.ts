/** Finds AWS credentials by the default chain of AWS's SDK, renews them, and explains to the operator why none were found. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env, requirePackage, type Log } from 'sluice';
import { CredentialsError, RenewedCredentials } from 'sluice/channel-kit';
import type { AwsCredentials } from './aws-signature.ts';

/** Options of the search for credentials. */
export interface AwsSource {
  /** A profile of the shared files. */
  readonly profile?: string | undefined;
  /** A role that is assumed with what was found. */
  readonly roleArn?: string | undefined;
  readonly externalId?: string | undefined;
  readonly sessionName?: string | undefined;
  readonly region: string;
}

/** Credentials as AWS's packages give them. */
interface Found extends AwsCredentials {
  readonly expiration?: Date;
}

/** Milliseconds before their expiry at which credentials are renewed. */
const renewBefore = 5 * 60_000;

/** Links of the default chain, by their names in the package's debug lines: name for messages, and advice for the operator. */
const links: Readonly<Record<string, { readonly name: string; readonly advice: string }>> = {
  fromEnv: {
    name: 'the environment',
    advice:
      'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN where they are temporary).',
  },
  fromSSO: { name: 'SSO', advice: 'Run `aws sso login` for the profile.' },
  fromIni: {
    name: 'the shared files',
    advice:
      'See that the profile is sound in ~/.aws/config and ~/.aws/credentials (AWS_PROFILE names another); for one that uses SSO run `aws sso login`.',
  },
  fromProcess: {
    name: 'the credential process',
    advice: 'See that `credential_process` of the profile works.',
  },
  fromTokenFile: {
    name: 'the web identity',
    advice:
      'See that AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN are right, and that the role trusts the provider.',
  },
  remoteProvider: { name: 'the instance', advice: 'Give the instance a role, or set other credentials.' },
  fromHttp: {
    name: 'the container endpoint',
    advice: 'Give the task or pod a role: AWS_CONTAINER_CREDENTIALS_FULL_URI returns no credentials.',
  },
  fromInstanceMetadata: {
    name: 'the instance metadata service',
    advice: 'Give the instance a role, set other credentials, or a `key` in the config.',
  },
  assumeRole: {
    name: 'the assumed role',
    advice:
      'See that `roleArn` is right, that the role trusts this identity, and that `externalId` is what it wants.',
  },
};

/** Credentials for all calls of a channel. */
export class AwsIdentity {
  readonly #source: AwsSource;
  readonly #found: RenewedCredentials<Found>;
  /** The link that was tried last. */
  #link = 'fromEnv';
  #provider: (() => Promise<Found>) | undefined;

  /** Throws where the package that finds credentials is not installed. */
  constructor(source: AwsSource, log: Log) {
    requirePackage('@aws-sdk/credential-providers', '3', 'find credentials of AWS without a key');
    this.#source = source;
    this.#found = new RenewedCredentials({
      ask: () => this.#find(),
      expires: ({ expiration }) => expiration?.getTime() ?? Infinity,
      ahead: () => renewBefore,
      log,
    });
  }

  /** Returns credentials. Rejects with a GatewayError. The log has the part of the credential chain that failed, and what to set. */
  async credentials(): Promise<AwsCredentials> {
    return this.#found.get();
  }

  /** Forgets credentials that the provider refused, so that they are looked up again for the next call. */
  forget(): void {
    this.#found.forget();
    this.#provider = undefined;
  }

  async #find(): Promise<Found> {
    try {
      this.#provider ??= await this.#chain();
      return await this.#provider();
    } catch (error) {
      // The next call begins anew, with what is set by then.
      this.#provider = undefined;
      const setUp = isNothing(error) ? await setUpLink() : undefined;
      throw new CredentialsError(explain(error, this.#link, setUp), { link: setUp ?? this.#link });
    }
  }

  /** Returns AWS's own credential chain, loaded only for channels that need it. Its debug lines show which provider of the chain it tries. */
  async #chain(): Promise<() => Promise<Found>> {
    const { fromNodeProviderChain, fromTemporaryCredentials } = await import('@aws-sdk/credential-providers');
    const { profile, roleArn, externalId, sessionName = 'sluice', region } = this.#source;
    const quiet = (): void => {};
    const logger = {
      debug: (line: unknown) => {
        const link = /(?:defaultProvider|remoteProvider)::(\w+)/.exec(String(line))?.[1];
        if (link !== undefined) this.#link = link.split('/')[0] ?? link;
      },
      trace: quiet,
      info: quiet,
      warn: quiet,
      error: quiet,
    };
    const clientConfig = { region };
    const chain = fromNodeProviderChain({
      logger,
      clientConfig,
      ...(profile === undefined ? {} : { profile }),
    });
    if (roleArn === undefined) return () => chain();
    const role = fromTemporaryCredentials({
      masterCredentials: chain,
      params: {
        RoleArn: roleArn,
        RoleSessionName: sessionName,
        ...(externalId === undefined ? {} : { ExternalId: externalId }),
      },
      clientConfig,
    });
    return async () => {
      await chain();
      this.#link = 'assumeRole';
      return role();
    };
  }
}

/** `setUp`: the link that somebody meant, where that is known and it was not the last one. */
function explain(error: unknown, last: string, setUp: string | undefined): string {
  const link = setUp ?? last;
  const { name, advice } = links[link] ?? { name: link, advice: '' };
  const problem = error instanceof Error ? `${error.name}: ${withoutSecrets(error.message)}` : 'it failed';
  const which = setUp === undefined ? 'the last link tried was' : 'what is set up is';
  return `AWS credentials could not be found: ${which} ${name} (${problem}). ${advice}`;
}

/** Returns true when the chain ended without naming a link that failed. */
function isNothing(error: unknown): boolean {
  return error instanceof Error && error.message.includes('from any providers');
}

/** Returns the configured part of the credential chain that is skipped because it is incomplete, or because its command fails. */
async function setUpLink(): Promise<string | undefined> {
  if ((env('AWS_ACCESS_KEY_ID') === undefined) !== (env('AWS_SECRET_ACCESS_KEY') === undefined))
    return 'fromEnv';
  const home = join(homedir(), '.aws');
  const files = [
    env('AWS_CONFIG_FILE') ?? join(home, 'config'),
    env('AWS_SHARED_CREDENTIALS_FILE') ?? join(home, 'credentials'),
  ];
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')));
  return texts.some((text) => /^\s*credential_process\s*=/m.test(text)) ? 'fromProcess' : undefined;
}

/** Masks tokens and keys: long sequences of letters and digits, which names and addresses are not. */
function withoutSecrets(message: string): string {
  return message.replaceAll(/[\w+/=-]{32,}/g, '…').slice(0, 300);
}
