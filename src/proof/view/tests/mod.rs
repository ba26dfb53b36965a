mod exchanges;
mod figures;
mod hostile;
mod kit;
mod outside;
mod overlays;
mod privileges;
