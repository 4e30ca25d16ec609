import { describe, expect, test } from 'vitest';
import { start, type Running } from '../core/cli/_process.ts';
import { operatorFolder } from '../support/operator-folder.ts';
import { call, callIn, framesOf, responseIn, textOf, runTurn, type Access, type Json } from './_turns.ts';
import { sluiceProgram } from '../support/program.ts';

const key = `sk-${'k'.repeat(48)}`;
const formats = ['chat-completions', 'messages', 'generate-content'] as const;

const config = `
  import { defineConfig } from 'sluice';
  import demo from '../../../channels/demo/index.ts';
  export default defineConfig({
    overload: { lag: 600_000 },
    channels: [
      ...${JSON.stringify(formats)}.map((format) => demo({ id: format, speaks: [format], models: { ['via-' + format]: 'demo' } })),
      demo({ id: 'slow', delay: 30000, models: { slow: 'demo' } }),
      demo({ id: 'paced', pace: 300, models: { paced: 'demo' } }),
    ],
  });`;

/** A gateway whose process can be killed and started again on the same data. */
class Mortal {
  readonly #folder = operatorFolder({ 'gateway.config.ts': config });
  #process: Running | undefined;

  async live(): Promise<Access> {
    const running = start(
      process.execPath,
      [...sluiceProgram, 'start', '--config', `${this.#folder}/gateway.config.ts`],
      {
        SLUICE_PORT: '0',
        SLUICE_BOOTSTRAP_KEY: key,
      },
    );
    this.#process = running;
    const [, url = ''] = await running.wrote(/listens on (http:\S+)/);
    return { url: url.replace('localhost', '127.0.0.1'), key };
  }

  async kill(): Promise<void> {
    this.#process?.child.kill('SIGKILL');
    const { signal } = (await this.#process?.ended) ?? {};
    if (signal !== 'SIGKILL') throw new Error(`The gateway had ended by itself before: ${String(signal)}`);
  }

  async reborn(): Promise<Access> {
    await this.kill();
    return this.live();
  }
}

const getWeather = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

describe('a gateway that is killed between turns', () => {
  test('goes on with every conversation by its id alone', async () => {
    const gateway = new Mortal();
    const clients = formats.flatMap((format) =>
      [false, true].map((stream) => ({ model: `via-${format}`, stream, turns: [] as Json[] })),
    );
    let access = await gateway.live();
    // Killed as soon as the last answer is there: what a client has seen the end of must be kept.
    await Promise.all(
      clients.map(async ({ model, stream, turns }) => {
        const body = { model, input: 'My name is Ada: call get_weather', tools: [getWeather] };
        turns.push(await runTurn(access, body, stream));
      }),
    );
    access = await gateway.reborn();
    await Promise.all(
      clients.map(async ({ model, stream, turns }) => {
        const [first] = turns as [Json];
        const input = [{ type: 'function_call_output', call_id: callIn(first).call_id, output: 'sunny' }];
        const body = { model, previous_response_id: first.id, input, tools: [getWeather] };
        turns.push(await runTurn(access, body, stream));
      }),
    );
    access = await gateway.reborn();
    for (const { model, stream, turns } of clients) {
      const [first, second] = turns as [Json, Json];
      expect(textOf(second)).toContain('get_weather returned: sunny');
      const third = await runTurn(
        access,
        { model, previous_response_id: second.id, input: '!request' },
        stream,
      );
      for (const part of ['My name is Ada', 'get_weather', 'sunny']) expect(textOf(third)).toContain(part);
      for (const shown of [first, second, third]) {
        expect((await call(access, 'GET', `/v1/responses/${String(shown.id)}`)).body).toEqual(shown);
      }
    }
    await gateway.kill();
  });

  test('has nothing of an answer that it was killed in', async () => {
    const gateway = new Mortal();
    let access = await gateway.live();
    const response = await fetch(`${access.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'paced', input: 'a b c d e f g h i j', stream: true }),
    });
    const { value } = (await response.body?.getReader().read()) ?? {};
    const { id } = responseIn(framesOf(Buffer.from(value ?? []).toString())[0]);
    access = await gateway.reborn();
    expect((await call(access, 'GET', `/v1/responses/${String(id)}`)).status).toBe(404);
    const next = { model: 'paced', previous_response_id: id, input: 'x' };
    expect((await call(access, 'POST', '/v1/responses', next)).status).toBe(400);
    await gateway.kill();
  });

  test('shows a response of the background as failed that was being made', async () => {
    const gateway = new Mortal();
    let access = await gateway.live();
    const queued = await runTurn(access, { model: 'slow', input: 'x', background: true });
    expect(queued).toMatchObject({ status: 'queued', background: true, output: [] });
    const path = `/v1/responses/${String(queued.id)}`;
    await expect.poll(async () => (await call(access, 'GET', path)).body.status).toBe('in_progress');
    access = await gateway.reborn();
    const followed = await call(access, 'POST', '/v1/responses', {
      model: 'slow',
      previous_response_id: queued.id,
      input: 'x',
    });
    expect(followed.body.error).toMatchObject({ code: 'previous_response_not_found' });
    await expect
      .poll(async () => (await call(access, 'GET', path)).body, { interval: 500 })
      .toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    await gateway.kill();
  });
});
