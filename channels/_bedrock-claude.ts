import { GatewayError, type JsonObject, type UpstreamRequest } from 'sluice';
import { parseObject } from 'sluice/internal';

/** The version that a body names; there is no other. */
const version = 'bedrock-2023-05-31';

/**
 * A request in the messages format as the body of InvokeModel: the model stands in the path, streaming is another method, and the version
 * and beta flags are members of the body.
 */
export function invocation({ body, headers, stream }: UpstreamRequest): {
  readonly method: string;
  readonly body: string;
} {
  const parsed = typeof body === 'string' || Buffer.isBuffer(body) ? parseObject(body.toString()) : undefined;
  if (parsed === undefined)
    throw new GatewayError('invalid_json', 'The request for this channel is not a JSON object.');
  const { model: _model, stream: _stream, ...rest } = parsed;
  const betas = [
    ...(Array.isArray(rest.anthropic_beta) ? (rest.anthropic_beta as readonly string[]) : []),
    ...(headers['anthropic-beta'] ?? '')
      .split(',')
      .map((flag) => flag.trim())
      .filter((flag) => flag !== ''),
  ];
  const sent: JsonObject = {
    anthropic_version: version,
    ...rest,
    ...(betas.length === 0 ? {} : { anthropic_beta: [...new Set(betas)] }),
  };
  return { method: stream ? 'invoke-with-response-stream' : 'invoke', body: JSON.stringify(sent) };
}

/** The Claude model that a name of Bedrock's means, whatever region or version stands around it; undefined for any other. */
export function claudeIn(model: string): string | undefined {
  return /(?:^|[./])anthropic\.(claude-[\w.-]+?)(?:-v\d+(?::\d+)*(?::\d+k)?)?$/.exec(model)?.[1];
}
