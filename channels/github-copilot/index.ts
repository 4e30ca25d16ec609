import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import {
  defineChannel,
  isChat,
  secretUrl,
  type ModelTraits,
  type UpstreamRequest,
  type Call,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import { withAuthorization, bearerTokens } from 'sluice/channel-kit';
import { copilotTokens, defaultBase, editor } from './tokens.ts';
import { ordinaryHeaders, traitsByModel } from '../_kit/http/http-channel.ts';
import { readModelList } from '../_kit/http/model-list.ts';
import { openaiTraits } from '../_kit/dialect/openai-models.ts';

/** Models of OpenAI from GPT-5.3 on answer in Responses alone: github:anomalyco/opencode#36305, github:egoist/chatwise-releases#1273 */
const endpoints = traitsByModel({
  '*': { formats: ['chat-completions'] },
  'gpt-5*': { formats: ['responses'] },
  'gpt-6*': { formats: ['responses'] },
  'mai-*': { formats: ['responses'] },
  'gpt-5-mini*': { formats: ['chat-completions', 'responses'] },
  'gpt-5.4': { formats: ['responses', 'chat-completions'] },
});

function traitsOf(model: string): ModelTraits {
  const { formats } = endpoints(model);
  if (model.startsWith('gpt-'))
    return { ...openaiTraits(model), ...(formats === undefined ? {} : { formats }) };
  return {
    reasoning: 'none',
    outputLimitField: 'max_tokens',
    systemRole: 'system',
    cacheMark: 'none',
    refuses: ['customTools', 'topK'],
    ...(formats === undefined ? {} : { formats }),
  };
}

/**
 * GitHub Copilot. A key is the token of a GitHub account with a Copilot subscription (`sluice login github-copilot` gets one). It is changed
 * for a token of Copilot's, which lives for half an hour and names the address of the account's plan.
 * github:microsoft/vscode-copilot-chat, src/platform/authentication/node/copilotTokenManager.ts and src/platform/networking/common/networking.ts
 */
export default defineChannel({
  name: 'github-copilot',
  catalogue: ['github_copilot'],
  models: 'discover',
  // github:microsoft/vscode-copilot-chat, github:ericc-ch/copilot-api (src/lib/api-config.ts) and LiteLLM 1.110.2 (llms/github_copilot/authenticator.py)
  login: {
    deviceUrl: 'https://github.com/login/device/code',
    tokenUrl: 'https://github.com/login/oauth/access_token',
    clientId: 'Iv1.b507a08c87ecfe98',
    scope: 'read:user',
    // opencode-copilot-auth 0.0.9, index.mjs, getUrls.
    hasOwnHosts: true,
  },
  options: z.object({
    tokenUrl: secretUrl(z.url())
      .default('https://api.github.com/copilot_internal/v2/token')
      .describe(
        'URL that exchanges GitHub tokens for Copilot tokens. For a company with its own host: https://api.COMPANY.ghe.com/…',
      ),
  }),
  setup({ tokenUrl, baseUrl }, tools: ChannelTools): ChannelParts {
    const accounts = tools.keys.map((key) => {
      const plan = { base: defaultBase };
      const tokens = bearerTokens(copilotTokens(tools.http, { key, tokenUrl, plan }), tools.log);
      // Known when the account has its first token.
      const base = async (): Promise<string> => {
        await tokens();
        return (baseUrl ?? plan.base).replace(/\/+$/, '');
      };
      return { base, http: withAuthorization({ ...tools, keys: [] }, tokens).http };
    });
    return {
      speaks: { chat: ['chat-completions', 'responses'], embed: ['embeddings'] },
      traits: traitsOf,
      // It is not documented how to control the reasoning of other models.
      thinking: { reasoning: 'none' },
      async listModels() {
        const [account] = accounts;
        if (account === undefined) throw new Error('The channel has no key.');
        const headers = { accept: 'application/json', 'accept-encoding': 'identity', ...editor };
        return readModelList(account.http, `${await account.base()}/models`, headers);
      },
      async open(call, request) {
        const account = accounts[call.target?.key.index ?? 0];
        if (account === undefined) throw new Error('The channel has no key.');
        return account.http.send(call, {
          url: (await account.base()) + request.path,
          method: 'POST',
          headers: { ...ordinaryHeaders(request), ...request.headers, ...editor, ...about(call, request) },
          body: request.body,
        });
      },
    };
  },
});

/** Returns headers with the initiator of the turn (a user, or an agent that returns tool results), and one for requests with images. */
function about(call: Call, { operation }: UpstreamRequest): Readonly<Record<string, string>> {
  const id = { 'x-request-id': randomUUID() };
  const { outline } = call;
  if (operation !== 'chat' || !isChat(outline)) return id;
  const { messages } = outline;
  const last = messages.at(-1);
  const isAgent =
    last?.role !== 'user' ||
    (last.content.length > 0 && last.content.every(({ type }) => type === 'tool-result'));
  const hasImages = messages.some(({ content }) =>
    content.some(
      (block) =>
        block.type === 'image' ||
        (block.type === 'tool-result' && block.content.some(({ type }) => type === 'image')),
    ),
  );
  return {
    ...id,
    'x-initiator': isAgent ? 'agent' : 'user',
    // github:microsoft/vscode#292901: images without it are answered 400.
    ...(hasImages ? { 'copilot-vision-request': 'true' } : {}),
  };
}
