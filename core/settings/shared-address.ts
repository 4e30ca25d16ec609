/** One server of the shared store. */
export interface SharedNode {
  readonly host: string;
  readonly port: number;
}

/** An address of a shared store, read. */
export interface SharedAddress {
  /** `single`: one server. `sentinel`: the master that Sentinels name. `cluster`: nodes that share the keys. */
  readonly kind: 'single' | 'sentinel' | 'cluster';
  readonly tls: boolean;
  /** The server, the Sentinels, or the nodes from which others are discovered. At least one. */
  readonly nodes: readonly SharedNode[];
  /** Name of the master, as Sentinels know it; empty for other kinds. */
  readonly master: string;
  readonly database: number;
  readonly username?: string;
  readonly password?: string;
}

/** The most servers that an address may name. */
const mostNodes = 64;

const forms =
  'Write redis://HOST:PORT, redis+sentinel://HOST:PORT,HOST:PORT/NAME, redis+cluster://HOST:PORT,HOST:PORT, or the same with rediss for TLS';

/**
 * Reads an address of a shared store: `redis://`, `redis+sentinel://` and `redis+cluster://`, with `rediss` for TLS, and
 * `USER:PASSWORD@` before the hosts. Returns what is wrong with it instead, as the end of a sentence, without repeating it.
 *
 * @example
 * readSharedAddress('redis+sentinel://:secret@10.0.0.1,10.0.0.2/mymaster/1').address?.nodes.length // 2
 */
export function readSharedAddress(
  text: string,
):
  | { readonly address: SharedAddress; readonly problem?: undefined }
  | { readonly problem: string; readonly address?: undefined } {
  const found = /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^@/?#]*)@)?([^@/?#]+)([^?#]*)$/i.exec(text);
  if (found === null)
    return { problem: `is not the URL of a shared store, or has "?" or "#" in it. ${forms}` };
  const [, scheme = '', form = 'single', credentials = '', hosts = '', path = ''] = found;
  const kind = form.toLowerCase() as SharedAddress['kind'];
  const nodes = hosts.split(',').map((host) => readNode(host, kind === 'sentinel' ? 26_379 : 6_379));
  if (nodes.length > mostNodes || nodes.includes(undefined) || (kind === 'single' && nodes.length > 1))
    return { problem: `has invalid hosts. ${forms}` };
  const [username, password] = splitCredentials(credentials);
  if (username === undefined || password === undefined)
    return { problem: 'has a user or password that is not percent-encoded' };
  const decodedSteps = path.split('/').slice(1).map(decoded);
  if (decodedSteps.includes(undefined)) return { problem: 'has a path that is not percent-encoded' };
  const steps = decodedSteps.filter((step) => step !== undefined);
  const master = kind === 'sentinel' ? (steps.shift() ?? '') : '';
  if (kind === 'sentinel' && master === '')
    return { problem: 'does not name the master: redis+sentinel://HOST,HOST/NAME' };
  const database = steps[0] === undefined || steps[0] === '' ? 0 : Number(steps[0]);
  if (!Number.isSafeInteger(database) || database < 0 || steps.length > 1)
    return { problem: 'has a database that is not a number from 0' };
  if (kind === 'cluster' && database !== 0)
    return { problem: 'has a database, but a cluster has only database 0' };
  return {
    address: {
      kind,
      tls: scheme.toLowerCase() === 'rediss',
      nodes: nodes.filter((node) => node !== undefined),
      master,
      database,
      ...(username === '' ? {} : { username }),
      ...(password === '' ? {} : { password }),
    },
  };
}

/** Returns a server as `host:port` or `[::1]:port`. */
export function nodeName({ host, port }: SharedNode): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Reads `host`, `host:port` or `[::1]:port`; undefined for other text. Without a port the server has the usual one. */
export function readNode(text: string, usualPort: number): SharedNode | undefined {
  const [, v6, name, port] = /^(?:\[([\da-f:.]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const host = v6 ?? name;
  const number = port === undefined ? usualPort : Number(port);
  if (host === undefined || number < 1 || number > 65_535) return undefined;
  return { host, port: number };
}

function splitCredentials(
  text: string,
): readonly [username: string | undefined, password: string | undefined] {
  const colon = text.indexOf(':');
  return colon < 0 ? [decoded(text), ''] : [decoded(text.slice(0, colon)), decoded(text.slice(colon + 1))];
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
