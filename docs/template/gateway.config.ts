import { defineConfig, env } from 'sluice';
import anthropic from 'sluice/channels/anthropic';
import cohere from 'sluice/channels/cohere';
import deepseek from 'sluice/channels/deepseek';
import demo from 'sluice/channels/demo';
import doubao from 'sluice/channels/doubao';
import gemini from 'sluice/channels/gemini';
import groq from 'sluice/channels/groq';
import jina from 'sluice/channels/jina';
import mistral from 'sluice/channels/mistral';
import openai from 'sluice/channels/openai';
import openrouter from 'sluice/channels/openrouter';
import vidu from 'sluice/channels/vidu';
import voyage from 'sluice/channels/voyage';
import local from './channels/local.ts';

// Plugins need no entry here: those of Sluice, and every file in plugins/, run with their default options. List one to give it options
// (logging({ successes: false }), imported from 'sluice/plugins/logging') or to switch it off (logging.off()).
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
    // A channel of your own, from channels/ beside this file.
    env('LOCAL_URL') && local({ baseUrl: env('LOCAL_URL', '') }),
  ],
});
