//! HTML page: one file that opens without a network.
//!
//! All text and figures are rendered here; the script only draws charts and switches between light and dark.
//! The page's content security policy forbids all requests. Text from outside (paths, labels) is escaped by
//! the template, in the drawing, or as JSON.

mod bars;
mod chart_data;
mod charts;
mod comparison;
mod diagram;
pub(crate) mod escape;
mod frame;
mod glyph;
mod lanes;
mod observation;
mod page;
mod path_view;
mod proof;
mod sections;
mod sides;
mod study;
mod style;
mod table;
mod verdict_view;

use askama::Template;

use self::comparison::ComparisonPage;
use self::observation::ObservationPage;
use self::page::Page;
use self::proof::ProofPage;
use self::sections::SectionsPage;
use self::study::StudyPage;
use crate::render::RenderInput;

/// Returns the page of any document.
///
/// # Errors
/// If the template cannot be rendered, which formatting into memory does not do.
pub fn page<'a>(of: impl Into<RenderInput<'a>>) -> Result<String, askama::Error> {
    let mut page = match of.into() {
        RenderInput::Run(recording) => Page::new(recording).render()?,
        RenderInput::Proof(document) => ProofPage::new(document).render()?,
        RenderInput::Comparison(document) => ComparisonPage::new(document).render()?,
        RenderInput::Observation(document) => ObservationPage::new(document).render()?,
        RenderInput::Study(document) => StudyPage::new(document).render()?,
        RenderInput::Fleet(document, _) => SectionsPage::of_fleet(document).render()?,
        RenderInput::Survey(survey) => SectionsPage::of_survey(survey).render()?,
        RenderInput::Status(status) => SectionsPage::of_page(&status.page()).render()?,
    };
    page.push('\n');
    Ok(page)
}
