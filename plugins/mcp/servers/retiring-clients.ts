/** Clients of an MCP server that lost their session, which are closed after their last request. */
import type { Client } from '@modelcontextprotocol/client';

/** Counts the requests of each client. The requests of a retired client continue, because each is rejected and retried separately. */
export class RetiringClients {
  /** Number of requests that run, by client. */
  readonly #running = new Map<Client, number>();
  readonly #retired = new Set<Client>();

  /** Registers a request until `end`. */
  begin(client: Client): void {
    this.#running.set(client, (this.#running.get(client) ?? 0) + 1);
  }

  /** Closes a retired client after its last request. */
  end(client: Client): void {
    const others = (this.#running.get(client) ?? 1) - 1;
    if (others > 0) this.#running.set(client, others);
    else {
      this.#running.delete(client);
      if (this.#retired.delete(client)) void quietlyClosed(client);
    }
  }

  /** Closes a client that has a running request once it has none. */
  retire(client: Client): void {
    this.#retired.add(client);
  }

  /** Closes all retired clients at once. */
  async close(): Promise<void> {
    await Promise.all([...this.#retired].map((client) => quietlyClosed(client)));
  }
}

async function quietlyClosed(client: Client): Promise<void> {
  await client.close().catch(() => undefined);
}
