/** Transport to an MCP server that the gateway starts as a process and talks to over its standard input and output. */
import { spawn, type ChildProcess } from 'node:child_process';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { ProcessConfig } from './config.ts';
import { LineSplitter } from './lines.ts';
import type { McpSdk } from './sdk.ts';

/** Milliseconds between closing the standard input, SIGTERM and SIGKILL. */
const graceMs = 2_000;

/** Milliseconds for reading the remaining output of a process that has ended. */
const lastWordsMs = 300;

/** Parts of a process that its owner supplies. */
export interface ProcessParts {
  readonly sdk: McpSdk;
  /** Receives a line of the process's standard error, cut to a bounded length. */
  stderr(line: string): void;
}

/**
 * Runs one process. Ends it with its whole process group, where the platform has groups. A gateway that is killed cannot do that: its
 * servers see the end of their standard input then, at which those that keep to the protocol exit.
 *
 * The SDK has such a transport too. This one bounds what a process that does not read can make the gateway hold, fails only the request
 * whose answer is too long instead of the connection, and ends children of the process such as those of `npx`.
 */
export class ProcessTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #config: ProcessConfig;
  readonly #parts: ProcessParts;
  #process: ChildProcess | undefined;
  #isClosed = false;
  #reading = Promise.resolve();

  constructor(config: ProcessConfig, parts: ProcessParts) {
    this.#config = config;
    this.#parts = parts;
  }

  start(): Promise<void> {
    const { command, args, env, cwd } = this.#config;
    return new Promise((resolve, reject) => {
      const child = spawn(command, args, {
        env: { ...this.#parts.sdk.defaultEnvironment(), ...env },
        stdio: ['pipe', 'pipe', 'pipe'],
        windowsHide: true,
        // A group of its own, so that its children can be ended too.
        detached: process.platform !== 'win32',
        ...(cwd === undefined ? {} : { cwd }),
      });
      this.#process = child;
      child.on('spawn', resolve);
      child.on('error', (error) => {
        reject(error);
        this.#closed();
      });
      child.on('close', () => this.#closed());
      // A child of the process may hold its pipes open for ever.
      child.on('exit', () => void setTimeout(() => this.#closed(), lastWordsMs));
      for (const pipe of [child.stdin, child.stdout, child.stderr])
        pipe.on('error', (error) => this.onerror?.(error));
      const messages = new LineSplitter(this.#config.maxMessageBytes, {
        line: (bytes) => this.#inOrder(() => this.#read(bytes)),
        longLine: (beginning, end) => this.#inOrder(() => this.#tooLong(beginning, end)),
      });
      child.stdout.on('data', (chunk: Buffer) => messages.push(chunk));
      const complaints = new LineSplitter(8_192, {
        line: (bytes) => this.#parts.stderr(bytes.toString('utf8', 0, 1_000)),
        longLine: (beginning) => this.#parts.stderr(beginning),
      });
      child.stderr.on('data', (chunk: Buffer) => complaints.push(chunk));
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#process?.stdin;
    if (stdin === undefined || stdin === null || !stdin.writable || this.#isClosed)
      throw new Error('The process has ended.');
    if (stdin.writableLength > this.#config.maxMessageBytes)
      throw new Error('The process does not read what it is sent.');
    stdin.write(`${JSON.stringify(message)}\n`);
  }

  async close(): Promise<void> {
    const child = this.#process;
    this.#closed();
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.stdin?.end();
    if (!(await hasExited(child))) {
      this.#kill('SIGTERM');
      await hasExited(child);
    }
    // Also after the process has exited, because its children may ignore the end of their input and SIGTERM.
    this.#kill('SIGKILL');
    await hasExited(child);
  }

  /** Handles a message in a turn of its own: the SDK would handle a notification after the result behind it in the same piece. */
  #inOrder(handle: () => void): void {
    this.#reading = this.#reading.then(handle).catch((error: unknown) => this.onerror?.(error as Error));
  }

  #read(bytes: Buffer): void {
    let message: JSONRPCMessage;
    try {
      message = this.#parts.sdk.parseMessage(JSON.parse(bytes.toString()));
    } catch {
      this.onerror?.(new Error('The process wrote a line that is not a message.'));
      return;
    }
    this.onmessage?.(message);
  }

  /** Fails the request that the long message answers. Only an id outside of the result counts, because tools choose what is in it. */
  #tooLong(beginning: string, end: string): void {
    const [, id] =
      /^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,/.exec(beginning) ??
      /,\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*\}\s*$/.exec(end) ??
      [];
    const message = `The message is longer than ${this.#config.maxMessageBytes} bytes.`;
    if (id === undefined) this.onerror?.(new Error(message));
    else this.onmessage?.({ jsonrpc: '2.0', id: Number(id), error: { code: -32603, message } });
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // Children of a process that crashed.
    if (this.#process?.exitCode !== null || this.#process.signalCode !== null) this.#kill('SIGKILL');
    this.onclose?.();
  }

  #kill(signal: NodeJS.Signals): void {
    const pid = this.#process?.pid;
    if (pid === undefined) return;
    try {
      if (process.platform === 'win32') this.#process?.kill(signal);
      else process.kill(-pid, signal);
    } catch {
      // The process has ended already.
    }
  }
}

/** Resolves with true once a process has exited, or with false after the grace period. */
function hasExited(child: ChildProcess): Promise<boolean> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(true);
  return new Promise((resolve) => {
    const exited = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    const timer = setTimeout(() => {
      child.off('exit', exited);
      resolve(false);
    }, graceMs);
    child.once('exit', exited);
  });
}
