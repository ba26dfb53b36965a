mod exchanges;
pub(in crate::proof) mod figures;
mod hostile;
mod kit;
mod outside;
mod overlays;
mod privileges;
