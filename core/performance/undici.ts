/** The parts of undici that send requests. */
import { createRequire } from 'node:module';
import type * as undici from 'undici';

/*
 * Those parts of undici that send requests. The whole package brings fetch, caches and mocks besides: 12 MB in each process, and a
 * twentieth of the time that a start takes.
 */
const require = createRequire(import.meta.url);

/** One connection, as the package's `Client`. */
export const Client = require('undici/lib/dispatcher/client.js') as typeof undici.Client;

/** Connections to one origin, as the package's `Pool`. */
export const Pool = require('undici/lib/dispatcher/pool.js') as typeof undici.Pool;

/** Opens sockets, as the package's `buildConnector`. */
export const buildConnector = require('undici/lib/core/connect.js') as typeof undici.buildConnector;

/** Asks the other side of a pool for a tunnel to `path`, as the package's `pool.connect`. */
export const requestTunnel = require('undici/lib/api/api-connect.js') as (
  this: undici.Pool,
  options: Omit<undici.Dispatcher.ConnectOptions, 'origin'>,
  callback: (error: Error | null, data: undici.Dispatcher.ConnectData) => void,
) => void;

/** Sends one request by a pool and gives back the whole answer's head with a body to read, as the package's `pool.request`. */
export const request = require('undici/lib/api/api-request.js') as (
  this: undici.Dispatcher,
  options: Omit<undici.Dispatcher.RequestOptions, 'origin'>,
) => Promise<undici.Dispatcher.ResponseData>;
