import { defineConfig, env } from '#sluice';
import anthropic from './channels/anthropic.ts';
import cohere from './channels/cohere.ts';
import deepseek from './channels/deepseek.ts';
import demo from './channels/demo/index.ts';
import doubao from './channels/doubao.ts';
import gemini from './channels/gemini.ts';
import groq from './channels/groq.ts';
import jina from './channels/jina.ts';
import mistral from './channels/mistral.ts';
import openai from './channels/openai.ts';
import openrouter from './channels/openrouter.ts';
import vidu from './channels/vidu.ts';
import voyage from './channels/voyage.ts';

// Plugins need no entry here: every file in plugins/ runs with its default options. List one to give it options
// (logging({ successes: false }), imported from './plugins/logging.ts') or to switch it off (logging.off()).
// "npx sluice check" shows what is in force. Variables may stand in a file .env beside this one: see .env.example.
export default defineConfig({
  listen: { port: 8080 },
  plugins: [],
  channels: [
    // Answers by itself, without any provider. Remove it when real channels do.
    demo(),
    // A channel whose key is not set is passed over.
    env('OPENAI_API_KEY') && openai({ key: env('OPENAI_API_KEY') }),
    env('ANTHROPIC_API_KEY') && anthropic({ key: env('ANTHROPIC_API_KEY') }),
    env('GEMINI_API_KEY') && gemini({ key: env('GEMINI_API_KEY') }),
    env('GROQ_API_KEY') && groq({ key: env('GROQ_API_KEY') }),
    env('DEEPSEEK_API_KEY') && deepseek({ key: env('DEEPSEEK_API_KEY') }),
    env('OPENROUTER_API_KEY') && openrouter({ key: env('OPENROUTER_API_KEY') }),
    env('MISTRAL_API_KEY') && mistral({ key: env('MISTRAL_API_KEY') }),
    env('COHERE_API_KEY') && cohere({ key: env('COHERE_API_KEY') }),
    env('JINA_API_KEY') && jina({ key: env('JINA_API_KEY') }),
    env('VOYAGE_API_KEY') && voyage({ key: env('VOYAGE_API_KEY') }),
    env('ARK_API_KEY') && doubao({ key: env('ARK_API_KEY') }),
    env('VIDU_API_KEY') && vidu({ key: env('VIDU_API_KEY') }),
  ],
});
