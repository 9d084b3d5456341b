//! What comes out of web pages.
#![allow(clippy::unwrap_used)]

use corpus::{Extracted, extract};
use proptest::prelude::*;

fn text(html: &str) -> String {
    match extract(html) {
        Extracted::Page(page) => page.text,
        other => panic!("{other:?} for {html}"),
    }
}

fn check(body: &str, expected: &str) {
    assert_eq!(text(&format!("<html><body><main>{body}</main></body></html>")), expected, "{body}");
}

#[test]
fn blocks_become_markdown() {
    check("<h1>A <code>b</code></h1><p>c\n  d<br>e</p>", "# A `b`\n\nc d\ne");
    check("<p>x&nbsp;y\u{200b}z</p>text <em>run</em>", "x yz\n\ntext run");
    check("<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul><p>d</p>", "- a\n- b\n  - c\n\nd");
    check("<ol start=3><li>a<li><p>b</p><p>c</p></ol>", "3. a\n4. b\n   c");
    check("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b");
    check("<dl><dt>t</dt><dd>one</dd><dt>u</dt><dd><p>two</p></dd></dl>", "- t: one\n- u: two");
    check("<p>2<sup>10</sup> and x<sup>?</sup></p>", "2^10 and x?");
    check("<a><p>a</p><p>b</p></a>", "a\n\nb");
    check("<p>a <code>x`y</code></p>", "a `xy`");
}

#[test]
fn tables_keep_their_cells_and_layout_tables_their_blocks() {
    check(
        "<table><thead><tr><th>a<th>b</thead><tr><td>1<td><code>2</code></table>",
        "| a | b |\n|---|---|\n| 1 | `2` |",
    );
    check("<table><tr><td class=lineno>1<td><pre>x\ny</pre></table>", "```\nx\ny\n```");
}

#[test]
fn code_keeps_its_lines_and_language() {
    check(
        "<pre><code class=\"language-rust,ignore\">fn a() {\n    b\n}\n</code></pre>",
        "```rust\nfn a() {\n    b\n}\n```",
    );
    check("<pre class=\"rust item-decl\"><code>struct A;</code></pre>", "```rust\nstruct A;\n```");
    check("<pre>a<br>b</pre>", "```\na\nb\n```");
    check("<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````");
    check(
        "<pre><span class=boring>fn main() {\n</span>    a;\n<span class=boring>}</span></pre>",
        "```\na;\n```",
    );
    check("<pre>\n\n</pre><p>a</p>", "a");
}

#[test]
fn boilerplate_is_left_out() {
    let page = "<html><body><nav>N</nav><div class=sidebar>S</div><main><p>text</p><script>x</script>\
        <button>Copy</button><div aria-hidden=true>H</div><p hidden>I</p></main><footer>F</footer></body></html>";
    assert_eq!(text(page), "text");
}

#[test]
fn rustdoc_items_have_their_path_and_signatures() {
    let page = "<main><div class=main-heading><div class=rustdoc-breadcrumbs><a>std</a>::<wbr><a>vec</a></div>\
        <h1>Struct <span>Ve<wbr>c</span>&nbsp;<button>Copy item path</button></h1><span class=sub-heading>1.0 Source</span></div>\
        <details open><summary class=hideme><span>Expand description</span></summary><div class=docblock><p>A list.</p></div></details>\
        <section id=m><span class=rightside>Source</span><h4 class=code-header>pub fn <a>len</a>(&amp;self) -&gt; <a>usize</a><div class=where>where\n  T: A,</div></h4></section>\
        <div id=trait-implementations-list><p>not here</p></div></main>";
    let expected =
        "# Struct std::vec::Vec\n\nA list.\n\n#### `pub fn len(&self) -> usize where T: A`";
    assert_eq!(text(page), expected);
}

#[test]
fn pages_without_main_give_their_densest_part() {
    let page = "<body><div><a href=/>Home</a><ul><li><a>One link</a><li><a>Another link</a></ul></div>\
        <div><div><h1>T</h1><p>A long paragraph of text about something.</p><p>And one more of these.</p></div></div></body>";
    assert_eq!(
        text(page),
        "# T\n\nA long paragraph of text about something.\n\nAnd one more of these."
    );
}

#[test]
fn stubs_are_told_apart() {
    let check = |html: &str, expected: Extracted| assert_eq!(extract(html), expected, "{html}");
    check("<meta http-equiv=Refresh content='0; URL=x.html'><p>a", Extracted::Redirect);
    check("<meta name=robots content=noindex><p>a", Extracted::NoIndex);
    check("<body><nav>a</nav>", Extracted::Empty);
    check("", Extracted::Empty);
}

#[test]
fn the_head_is_read() {
    let page = "<html lang=en-GB><head><title>T</title><link rel=canonical href=https://a.org/x>\
        <meta property=article:modified_time content=1970-01-02></head><body><p>words</p></body></html>";
    let Extracted::Page(page) = extract(page) else { panic!("no page") };
    assert_eq!((page.title.as_str(), page.modified), ("T", 86_400));
    assert_eq!(
        (page.canonical.as_deref(), page.language.as_deref()),
        (Some("https://a.org/x"), Some("en"))
    );
}

#[test]
fn hostile_nesting_does_not_exhaust_the_stack() {
    for (open, close) in [
        ("<div>", "</div>"),
        ("<ul><li>", ""),
        ("<b>", ""),
        ("<pre><span>", ""),
        ("<table><tr><td>", ""),
    ] {
        let page = format!("<main>{}x{}</main>", open.repeat(3_000), close.repeat(3_000));
        std::thread::Builder::new()
            .stack_size(16 << 20)
            .spawn(move || assert!(matches!(extract(&page), Extracted::Page(_))))
            .unwrap()
            .join()
            .unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_page_panics(parts in proptest::collection::vec(
        prop_oneof![
            "\\PC{0,12}",
            proptest::sample::select(vec![
                "<main>", "</main>", "<p>", "</p>", "<pre>", "</pre>", "<code class=language->", "<ul><li>", "</ul>",
                "<table><tr><td>", "</table>", "<dl><dt>", "<dd>", "<h1 class=code-header>", "<div class=main-heading>",
                "<span class=structfield>", "<blockquote>", "<sup>", "`", "```", "\n", "&#0;", "&nbsp;", "<br>", "<!--",
                "<svg>", "<template>", "<ol start=99999999999999999999>", "<article>",
            ]).prop_map(str::to_owned),
        ], 0..40,
    )) {
        if let Extracted::Page(page) = extract(&parts.concat()) {
            prop_assert!(!page.text.is_empty());
        }
    }
}
