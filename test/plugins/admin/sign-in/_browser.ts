/** A browser that signs in, as far as addresses and cookies go. */
export class Visitor {
  readonly #cookies = new Map<string, string>();
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** Sends a request with the cookies, and keeps those of the response. Redirects are not followed. */
  async send(path: string, init: RequestInit = {}): Promise<Response> {
    // Whatever name the gateway has in public, it is this one.
    const { pathname, search } = new URL(path, this.#url);
    const response = await fetch(new URL(pathname + search, this.#url), {
      redirect: 'manual',
      ...init,
      headers: { ...init.headers, cookie: [...this.#cookies].map((pair) => pair.join('=')).join('; ') },
    });
    for (const header of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(header) ?? [];
      if (value === '') this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
    return response;
  }

  /** Follows a path and returns the target of the redirect. */
  async follow(path: string): Promise<string> {
    const response = await this.send(path);
    return response.headers.get('location') ?? `status ${response.status}: ${await response.text()}`;
  }

  cookie(name: string): string | undefined {
    return this.#cookies.get(name);
  }

  setCookie(name: string, value: string): void {
    this.#cookies.set(name, value);
  }
}
