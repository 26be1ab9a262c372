//! A lab's report as one HTML file: text, tables and pictures, nothing fetched.

use std::fmt::Write;

use anyhow::Result;
use foveal_labs::{Lab, Language, Report, Section, Table};
use foveal_view::{Look, Theme};

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.55 system-ui,'Noto Sans KR',sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}\
table{border-collapse:collapse;margin:1.5rem 0;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}\
caption{text-align:left;font-weight:600;padding-bottom:.4rem}\
th,td{padding:.2rem .7rem;text-align:right;white-space:nowrap}\
th{border-bottom:1px solid #999;font-weight:600}\
.text{text-align:left;white-space:normal}\
figure{margin:1.5rem 0;overflow-x:auto}\
svg{max-width:100%;height:auto}\
.dark{display:none}\
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#111}.light{display:none}.dark{display:block}}";

/// The page in one language.
pub fn html(lab: &Lab, report: &Report, language: Language) -> Result<String> {
    let (title, summary) = (escape(lab.title.get(language)), escape(lab.summary.get(language)));
    let code = language.choose("en", "ko");
    let mut page = format!(
        "<!doctype html>\n<html lang=\"{code}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{summary}</p>\n"
    );
    for section in &report.sections {
        match section {
            Section::Prose(text) => writeln!(page, "<p>{}</p>", escape(text.get(language)))?,
            Section::Table(table) => push_table(&mut page, table, language)?,
            Section::Scene(scene) => {
                for (class, theme) in [("light", Theme::Light), ("dark", Theme::Dark)] {
                    let picture = scene.get(language).svg(&Look::new().theme(theme))?;
                    writeln!(page, "<figure class=\"{class}\">{picture}</figure>")?;
                }
            }
        }
    }
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

fn push_table(page: &mut String, table: &Table, language: Language) -> Result<()> {
    page.push_str("<table>\n");
    if !table.title.is_empty() {
        writeln!(page, "<caption>{}</caption>", escape(table.title.get(language)))?;
    }
    for (tag, row) in std::iter::once(("th", &table.head)).chain(table.rows.iter().map(|row| ("td", row))) {
        page.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let class = if table.text_columns.contains(&column) { " class=\"text\"" } else { "" };
            write!(page, "<{tag}{class}>{}</{tag}>", escape(cell.get(language)))?;
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n");
    Ok(())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
