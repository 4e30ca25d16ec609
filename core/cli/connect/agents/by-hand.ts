/**
 * Agents and SDKs that read their settings from environment variables or their own dialogs: `sluice connect` writes no file, and prints the
 * steps.
 */
import type { Access, Agent } from '../agent.ts';

/** Returns the key for a shell command: a reference to its variable, or a placeholder, because keys are never printed. */
function shellKey({ key }: Access): string {
  return 'env' in key ? `"$${key.env}"` : 'YOUR-KEY';
}

/** Cursor has no settings file for providers. https://docs.cursor.com/settings/models */
export const cursor: Agent = {
  name: 'cursor',
  title: 'Cursor',
  plan: ({ url, model }) => ({
    files: [],
    notes: [
      'Cursor keeps these settings in your account. Open Settings > Models:',
      `1. Add the model ${model}.`,
      `2. Enable "Override OpenAI Base URL" and enter ${url}/v1.`,
      '3. Enter your API key of the gateway under "OpenAI API Key".',
      "Cursor sends requests from its own servers: the gateway's address must be reachable from the internet, over https.",
    ],
  }),
};

/** Roo Code keeps its settings in the storage of VS Code. */
export const roo: Agent = {
  name: 'roo',
  title: 'Roo Code',
  aliases: ['roo-code'],
  plan: ({ url, model }) => ({
    files: [],
    notes: [
      'Roo Code keeps these settings in the secret storage of VS Code. Open its settings, section "Providers":',
      '1. Choose the API provider "OpenAI Compatible".',
      `2. Enter the base URL ${url}/v1, your API key of the gateway, and the model ${model}.`,
    ],
  }),
};

/** GitHub Copilot CLI reads a custom provider from environment variables only. Tested with 1.0. */
export const copilot: Agent = {
  name: 'copilot',
  title: 'GitHub Copilot CLI',
  aliases: ['copilot-cli'],
  plan: (access) => ({
    files: [],
    exports: {
      COPILOT_PROVIDER_BASE_URL: `${access.url}/v1`,
      COPILOT_PROVIDER_API_KEY: shellKey(access),
      COPILOT_MODEL: access.model,
    },
  }),
};

/** Programs that use the SDKs of OpenAI. */
export const openaiSdk: Agent = {
  name: 'openai',
  title: "OpenAI's SDKs",
  plan: (access) => ({
    files: [],
    exports: { OPENAI_BASE_URL: `${access.url}/v1`, OPENAI_API_KEY: shellKey(access) },
    notes: [`Use the model ${access.model} in your requests.`],
  }),
};

/** Programs that use the SDKs of Anthropic. */
export const anthropicSdk: Agent = {
  name: 'anthropic',
  title: "Anthropic's SDKs",
  plan: (access) => ({
    files: [],
    exports: { ANTHROPIC_BASE_URL: access.url, ANTHROPIC_AUTH_TOKEN: shellKey(access) },
    notes: [`Use the model ${access.model} in your requests.`],
  }),
};

/** Programs that use the SDKs of Google for Gemini. */
export const geminiSdk: Agent = {
  name: 'google',
  title: "Google's SDKs for Gemini",
  plan: (access) => ({
    files: [],
    exports: { GOOGLE_GEMINI_BASE_URL: access.url, GEMINI_API_KEY: shellKey(access) },
    notes: [`Use the model ${access.model} in your requests.`],
  }),
};
