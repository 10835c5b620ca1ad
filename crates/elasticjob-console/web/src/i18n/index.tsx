import { createContext, type ReactNode, use, useEffect, useMemo, useState } from "react";

import { en, type Messages } from "./en";
import { zh } from "./zh";

export type Language = "en" | "zh";

const CATALOGUES: Record<Language, Messages> = { en, zh };
export const LOCALES: Record<Language, string> = { en: "en-GB", zh: "zh-CN" };
const KEY = "elasticjob-language";

interface LanguageState {
  language: Language;
  setLanguage: (language: Language) => void;
}

const Context = createContext<LanguageState>({ language: "en", setLanguage: () => {} });

function initialLanguage(): Language {
  try {
    const stored = localStorage.getItem(KEY);
    if (stored === "en" || stored === "zh") return stored;
  } catch {
    // Storage may be blocked; then the browser's language decides.
  }
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, setState] = useState(initialLanguage);
  useEffect(() => {
    document.documentElement.lang = LOCALES[language];
  }, [language]);
  const control = useMemo(() => {
    const setLanguage = (next: Language) => {
      setState(next);
      try {
        localStorage.setItem(KEY, next);
      } catch {
        // Storage may be blocked; then the choice lasts until the page is closed.
      }
    };
    return { language, setLanguage };
  }, [language]);
  return <Context value={control}>{children}</Context>;
}

export const useLanguage = () => use(Context);
export const useLocale = () => LOCALES[use(Context).language];
/** The texts in the selected language. */
export const useText = (): Messages => CATALOGUES[use(Context).language];
