/** Reports findings of checks: errors for refused calls, tags for other plugins and clients, alerts, log lines and metrics. */
import { addReplyHeaders, caller, GatewayError, type Call, type PluginTools } from 'sluice';
import type { Check } from './checks.ts';
import type { GuardOptions } from './options.ts';
import { signatureOf } from './remote/webhook.ts';
import { guardTags } from './tags.ts';

/** Finding of a check. It contains none of the text that was checked. */
export interface Found {
  readonly check: Check;
  readonly side: 'request' | 'response';
  /** Labels of entities, or categories of a service. */
  readonly reasons: readonly string[];
  /** Path in the client's request. */
  readonly at?: string | undefined;
}

interface Quiet {
  readonly until: number;
  left: number;
}

/** Maximum number of reasons that are logged for a finding. */
const maxReasons = 20;

/** Reports the findings of checks. */
export class Reporter {
  readonly #tools: Pick<PluginTools, 'log' | 'http'>;
  readonly #alerts: GuardOptions['alerts'];
  readonly #counter: ReturnType<PluginTools['metrics']['counter']>;
  readonly #quiet = new Map<Check, Quiet>();

  constructor(
    { log, http, metrics }: Pick<PluginTools, 'log' | 'http' | 'metrics'>,
    alerts: GuardOptions['alerts'],
  ) {
    this.#tools = { log, http };
    this.#alerts = alerts;
    this.#counter = metrics.counter('findings', 'Findings of checks.', ['check', 'action', 'side']);
  }

  /** Returns the error for a refused call, and counts it. */
  refusal(call: Call, found: Found): GatewayError {
    this.#count(found);
    const { check, side, at } = found;
    this.#tools.log.info(this.#fields(call, found), 'guard: refused');
    const what = side === 'request' ? 'This request' : 'The response';
    const sentence = check.message ?? `${what} was refused by the check "${check.name}".`;
    return new GatewayError('content_policy_violation', sentence, {
      retryable: false,
      ...(at === undefined ? {} : { param: at }),
    });
  }

  /** Reports a finding that does not refuse the call: a mask, a tag or an alert. */
  note(call: Call, found: Found): void {
    this.#count(found);
    const { action } = found.check;
    if (action === 'tag') this.#tag(call, found);
    else if (action === 'alert') this.#alert(call, found);
  }

  /** Reports that a check failed. */
  down(call: Call, check: Check, error: unknown): void {
    this.#counter.add({ check: check.name, action: 'down', side: '' });
    const fields = { id: call.id, check: check.name, reason: reasonOf(error) };
    this.#tools.log.warn(fields, 'guard: a check did not respond');
  }

  #count({ check, side }: Found): void {
    this.#counter.add({ check: check.name, action: check.action, side });
  }

  #fields(call: Call, { check, side, reasons, at }: Found): object {
    const shownReasons = reasons.slice(0, maxReasons).map((reason) => reason.slice(0, 100));
    return { id: call.id, keyId: call.get(caller)?.id, check: check.name, side, reasons: shownReasons, at };
  }

  #tag(call: Call, found: Found): void {
    const tags = call.get(guardTags) ?? [];
    if (!tags.includes(found.check.name)) {
      const all = [...tags, found.check.name];
      call.set(guardTags, all);
      addReplyHeaders(call, { 'x-sluice-guard': all.join(', ') });
    }
    this.#tools.log.info(this.#fields(call, found), 'guard: tagged');
  }

  #alert(call: Call, found: Found): void {
    const now = Date.now();
    const quiet = this.#quiet.get(found.check);
    if (quiet !== undefined && now < quiet.until) {
      quiet.left += 1;
      return;
    }
    const fields = { ...this.#fields(call, found), unreported: quiet?.left ?? 0 };
    this.#quiet.set(found.check, { until: now + this.#alerts.every, left: 0 });
    this.#tools.log.warn(fields, 'guard: alert');
    const { url, secret } = this.#alerts;
    if (url === undefined) return;
    const body = JSON.stringify({ version: 1, ...fields, at: new Date(now).toISOString() });
    this.#tools.http
      .ask({
        url,
        body,
        headers: {
          'content-type': 'application/json',
          ...(secret === undefined
            ? {}
            : { 'x-sluice-signature': signatureOf(secret, body, Math.floor(now / 1000)) }),
        },
        timeout: 5_000,
      })
      .then(({ status }) => {
        if (status >= 300) throw new Error(`The receiver of alerts returned status ${status}.`);
      })
      .catch((error: unknown) =>
        this.#tools.log.warn(
          { reason: error instanceof Error ? error.message : '' },
          'guard: an alert was not delivered',
        ),
      );
  }
}

/** Returns the reason of a failure. Messages of parsers and of providers are left out, because they may quote requests or responses. */
function reasonOf(error: unknown): string {
  if (error instanceof GatewayError) return error.code;
  if (!(error instanceof Error)) return 'unknown';
  if (error.name !== 'Error') return `the response cannot be read (${error.name})`;
  return error.message.slice(0, 300);
}
