/** Device authorization grant of OAuth 2.0 (RFC 8628), for `sluice login`. */
import { hideSecret } from '../../log.ts';
import { isObject } from '../../model/json.ts';
import type { DeviceLogin } from '../../sdk/author/channel.ts';
import type { Services } from '../../sdk/author/services.ts';

/** Functions that a sign-in uses. */
export interface LoginTools extends Pick<Services, 'ask'> {
  /** Shows a line to the person who signs in. */
  print(line: string): void;
  wait(milliseconds: number): Promise<void>;
  now(): number;
}

/** Default polling interval and lifetime of a code in seconds. https://www.rfc-editor.org/rfc/rfc8628#section-3.2 */
const [ordinaryInterval, ordinaryLife] = [5, 900];
/** Maximum of both in seconds, whatever the server requests. */
const [longestInterval, longestLife] = [60, 1800];
const codeLimit = 64 * 1024;

/**
 * Gets a token: shows a code, and polls until the person has entered it at the provider. Throws an Error for the operator where the person
 * refuses or the code expires.
 */
export async function deviceToken(login: DeviceLogin, tools: LoginTools): Promise<string> {
  const { clientId, scope } = login;
  const begun = await post(tools, login.deviceUrl, {
    client_id: clientId,
    ...(scope === undefined ? {} : { scope }),
  });
  const { device_code: code, user_code: shown, verification_uri: where } = begun;
  if (typeof code !== 'string' || typeof shown !== 'string' || typeof where !== 'string')
    throw new Error(`${hostOf(login.deviceUrl)} returned no code: ${reasonIn(begun)}.`);
  hideSecret(code);
  tools.print(`Open ${where} and enter the code ${shown}.`);
  let interval = secondsIn(begun['interval'], ordinaryInterval, longestInterval);
  const end = tools.now() + secondsIn(begun['expires_in'], ordinaryLife, longestLife) * 1000;
  // oxlint-disable no-await-in-loop -- polling
  while (tools.now() < end) {
    await tools.wait(interval * 1000);
    const answer = await post(tools, login.tokenUrl, {
      client_id: clientId,
      device_code: code,
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    });
    const { access_token: token, error } = answer;
    if (typeof token === 'string' && token !== '') {
      hideSecret(token);
      return token;
    }
    // https://www.rfc-editor.org/rfc/rfc8628#section-3.5
    if (error === 'slow_down') interval = Math.min(longestInterval, interval + 5);
    else if (error !== 'authorization_pending')
      throw new Error(`${hostOf(login.tokenUrl)} returned no token: ${reasonIn(answer)}.`);
  }
  // oxlint-enable no-await-in-loop
  throw new Error('The code was not entered in time. Run the command again for a new one.');
}

type Answer = Readonly<Record<string, unknown>>;

async function post(tools: LoginTools, url: string, form: Readonly<Record<string, string>>): Promise<Answer> {
  const answer = await tools.ask({
    url,
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
    limit: codeLimit,
  });
  const body = answer.json();
  if (!isObject(body))
    throw new Error(`${hostOf(url)} returned status ${answer.status} without a JSON object.`);
  return body;
}

function secondsIn(value: unknown, otherwise: number, most: number): number {
  return typeof value === 'number' && value > 0 ? Math.min(value, most) : otherwise;
}

function reasonIn({ error, error_description: description }: Answer): string {
  const reason = [description, error].find((one) => typeof one === 'string');
  return typeof reason === 'string' ? reason.slice(0, 200).replace(/\.$/, '') : 'it does not say why';
}

function hostOf(url: string): string {
  return new URL(url).host;
}
