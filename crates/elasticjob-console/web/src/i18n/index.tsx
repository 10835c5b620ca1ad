import { createContext, type ReactNode, use, useEffect, useMemo, useState } from "react";

import { en, type Messages } from "./en";
import { zh } from "./zh";

export type Language = "en" | "zh";

const CATALOGUES: Record<Language, Messages> = { en, zh };
export const LOCALES: Record<Language, string> = { en: "en-GB", zh: "zh-CN" };
const KEY = "elasticjob-language";

interface Spoken {
  language: Language;
  speak: (language: Language) => void;
}

const Context = createContext<Spoken>({ language: "en", speak: () => {} });

function first(): Language {
  try {
    const kept = localStorage.getItem(KEY);
    if (kept === "en" || kept === "zh") return kept;
  } catch {
    // Storage may be shut off; then the browser's choice is ours.
  }
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState(first);
  useEffect(() => {
    document.documentElement.lang = LOCALES[language];
  }, [language]);
  const spoken = useMemo(() => {
    const speak = (next: Language) => {
      setLanguage(next);
      try {
        localStorage.setItem(KEY, next);
      } catch {
        // It holds for this page, then.
      }
    };
    return { language, speak };
  }, [language]);
  return <Context value={spoken}>{children}</Context>;
}

export const useLanguage = () => use(Context);
export const useLocale = () => LOCALES[use(Context).language];
/** Everything that is said, in the chosen language. */
export const useText = (): Messages => CATALOGUES[use(Context).language];
